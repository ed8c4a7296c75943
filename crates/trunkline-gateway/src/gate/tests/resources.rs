//! Which server a URI belongs to, what completions reveal, and what the audit records.

use serde_json::json;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

use super::*;
use crate::gate::completed::Completed;

/// Two servers that nobody reaches; `ann` may not read below `/etc`.
fn catalog(audit: &str) -> String {
    format!(
        "gateway:
  audit: '{audit}'
  rules: [{{ principals: [ann], tools: ['*.read:file:///etc/*'], effect: deny }}]
mcpServers:
  a: {{ url: 'http://127.0.0.1:9/mcp' }}
  b: {{ url: 'http://127.0.0.1:9/mcp' }}
"
    )
}

/// Both list `x://same`, and each one of its own; `b` has a template.
async fn open(folder: &Folder) -> Gateway {
    let audit = folder.join("audit.jsonl").display().to_string();
    let plan = fixture::plan(&catalog(&audit));
    let gateway = Gateway::open(plan, settings(None)).await.unwrap();
    for (name, server) in &gateway.0.active_plan().servers {
        let page = json!({ "resources": [
            { "uri": "x://same", "name": "same" }, { "uri": format!("x://{name}"), "name": "own" },
        ] });
        let (page, mut pages) = (page.to_string(), Vec::new());
        pages.push((Kind::Resources, &*page));
        if name == "b" {
            let template =
                r#"{"resourceTemplates":[{"uriTemplate":"file:///{+path}","name":"f"}]}"#;
            pages.push((Kind::Templates, template));
        }
        server.set_lists(Arc::new(lists(Revision::V2025_06_18, &pages)), || ());
    }
    gateway.0.generation.fetch_add(1, Ordering::AcqRel);
    gateway
}

async fn read(gateway: &Gateway, who: &str, uri: &str) -> ErrorObject {
    call(gateway, who, "resources/read", json!({ "uri": uri })).await.unwrap_err()
}

#[tokio::test]
async fn a_uri_that_two_servers_claim_is_read_from_neither() {
    let folder = Folder::new();
    let gateway = open(&folder).await;
    let error = read(&gateway, "bob", "x://same").await;
    assert_eq!(reason(&Err(error.clone())), "ambiguous_uri");
    assert!(error.message.contains("`a` and `b`"), "{}", error.message);
    assert!(error.message.contains("`trunkline:a/x://same`"), "{}", error.message);
    assert_eq!(last(&gateway)["server"], Value::Null);
    for (uri, server) in [("trunkline:b/x://same", "b"), ("x://a", "a"), ("file:///x", "b")] {
        read(&gateway, "bob", uri).await;
        assert_eq!(last(&gateway)["server"], server, "{uri}");
    }
}

#[tokio::test]
async fn an_unlisted_uri_is_only_read_from_the_server_that_named_it() {
    let folder = Folder::new();
    let gateway = open(&folder).await;
    read(&gateway, "bob", "y://secret").await;
    assert_eq!(last(&gateway)["server"], Value::Null, "nobody was asked");
    let (shared, view) = (&gateway.0, gateway.0.view(Selector::All));
    let named_by = |who: &str, server: &str| {
        let said = r#"{"content":[{"type":"resource_link","name":"s","uri":"y://secret"}]}"#;
        let mut caller = Caller::named(who);
        caller.id = Principal::new(who).id().into();
        let index = || view.index(shared);
        shared.named.remember(index, &caller, &Arc::from(server), &Json::parse(said).unwrap());
    };
    named_by("bob", "b");
    read(&gateway, "bob", "y://secret").await;
    assert_eq!(last(&gateway)["server"], "b");
    read(&gateway, "eve", "y://secret").await;
    assert_eq!(last(&gateway)["server"], Value::Null, "it was named to somebody else");
    named_by("bob", "a");
    read(&gateway, "bob", "y://secret").await;
    assert_eq!(last(&gateway)["server"], Value::Null, "two have named it");
}

fn completion(value: &str) -> Value {
    json!({
        "ref": { "type": "ref/resource", "uri": "file:///{+path}" },
        "argument": { "name": "path", "value": value },
    })
}

#[tokio::test]
async fn rules_are_asked_about_what_is_completed_and_not_about_its_template() {
    let folder = Folder::new();
    let gateway = open(&folder).await;
    for (who, typed, is_denied) in [
        ("ann", "etc/pass", true),
        ("ann", "srv/../etc/pass", true),
        ("ann", "srv/", false),
        ("bob", "etc/pass", false),
    ] {
        let told = call(&gateway, who, "completion/complete", completion(typed)).await;
        assert_eq!(reason(&told) == "unknown_reference", is_denied, "{who} {typed}");
    }
}

#[tokio::test]
async fn suggestions_that_the_caller_may_not_read_are_left_out() {
    let folder = Folder::new();
    let gateway = open(&folder).await;
    let walk = |who: &str| Walk {
        shared: Arc::clone(&gateway.0),
        active: gateway.0.active_plan(),
        view: gateway.0.view(Selector::All),
        caller: Arc::new(Caller::named(who)),
        handle: ConversationHandle::unheard(),
        call: made("completion/complete", completion("e"), None, who),
        approved: None,
        digest: None,
        plugged: None,
        as_task: false,
        hop: crate::server::Hop::May,
        steps: std::sync::atomic::AtomicU32::new(0),
    };
    let said = r#"{"completion":{"values":["etc/passwd","srv/a","/etc"],"total":9}}"#;
    let told = |who: &str| {
        let walk = walk(who);
        let index = walk.view.index(&walk.shared);
        let target = index.template("file:///{+path}").unwrap();
        let result = CallOutcome::Answer(Json::parse(said).unwrap(), Revision::LATEST);
        let result = match Completed::of(&walk, target, &walk.call.params) {
            Some(mut completed) => completed.filter(&walk, result),
            None => result,
        };
        let CallOutcome::Answer(said, _) = result else { panic!("it is an answer") };
        said.get().to_owned()
    };
    assert_eq!(told("ann"), r#"{"completion":{"values":["srv/a","/etc"]}}"#);
    assert_eq!(told("bob"), said);
}

fn made(method: &str, params: Value, meta: Option<Json>, who: &str) -> Call {
    Call {
        key: CallKey(1),
        id: Id::Number(1),
        method: method::find(method, Sender::Client, Revision::LATEST).unwrap(),
        params: Object::parse(&params.to_string()).unwrap(),
        meta,
        revision: Revision::LATEST,
        peer: Arc::default(),
        via: RequestStream::default(),
        is_unseen: false,
        wants_progress: false,
        log_level: None,
        attached: Attached::new(Principal::new(who)),
    }
}

#[tokio::test]
async fn the_audit_has_its_own_ids_and_records_the_target() {
    let folder = Folder::new();
    let gateway = open(&folder).await;
    let parent = r#"{"traceparent":"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}"#;
    for _ in 0..2 {
        let meta = Some(Json::parse(parent).unwrap());
        let call = made("completion/complete", completion("srv"), meta, "bob");
        let view = gateway.0.view(Selector::All);
        let Answer::Later(later) =
            super::super::call(&gateway.0, &view, call, &ConversationHandle::unheard())
        else {
            panic!("a server has to be asked");
        };
        later.await.unwrap_err();
    }
    gateway.0.active_plan().audit.as_ref().unwrap().flush().await;
    let text = std::fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines[0]["event"], "started");
    let calls: Vec<_> = lines.iter().filter(|it| it["method"].is_string()).collect();
    assert_eq!(calls.len(), 2);
    for line in &calls {
        assert_eq!(line["method"], "completion/complete");
        assert_eq!((&line["uri"], &line["tool"]), (&"file:///{+path}".into(), &Value::Null));
        assert_eq!(line["traceId"], "0123456789abcdef0123456789abcdef");
    }
    assert_ne!(calls[0]["id"], calls[1]["id"], "no caller chooses it");
}

#[tokio::test]
async fn calls_that_cannot_be_recorded_are_refused_with_on_failure_refuse() {
    let plan = catalog("x").replace("'x'", "{ path: /dev/full, onFailure: refuse }");
    let plan = fixture::plan(&plan);
    let gateway = Gateway::open(plan, settings(None)).await.unwrap();
    gateway.0.active_plan().audit.as_ref().unwrap().flush().await;
    let told = call(&gateway, "bob", "tools/call", json!({ "name": "a.b" })).await;
    assert_eq!(reason(&told), "audit_unavailable");
}

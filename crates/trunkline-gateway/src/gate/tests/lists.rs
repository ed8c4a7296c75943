//! Which lists callers see, and how many bytes of them are cached.

use serde_json::json;

use trunkline_wire::model::{Implementation, ServerCapabilities};

use super::*;
use crate::copies::MOST;
use crate::merge::Draft;

/// A page of tools of a little more than this many bytes.
fn many(bytes: usize) -> crate::merge::Lists {
    let text = "x".repeat(4 << 10);
    let tool = |it| json!({ "name": format!("t{it}"), "description": text, "inputSchema": {} });
    let page = json!({ "tools": (0..bytes >> 12).map(tool).collect::<Vec<_>>() }).to_string();
    lists(Revision::V2025_06_18, &[(Kind::Tools, &page)])
}

#[tokio::test]
async fn copies_of_lists_for_all_selectors_are_bounded_in_bytes() {
    let gateway = open(settings(None)).await;
    let server = Arc::clone(&gateway.0.active_plan().servers["a"]);
    server.set_lists(Arc::new(many(1 << 20)), || ());
    gateway.0.generation.fetch_add(1, Ordering::AcqRel);
    let choose = |it: usize| gateway.0.view(Selector::Tags(vec![it.to_string()]));
    let views: Vec<_> = (0..8).map(choose).collect();
    let mut most = 0;
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        for view in &views {
            let index = view.index(&gateway.0);
            let look = Look { revision, after: None, visible: None, seal: &|_| String::new() };
            assert!(index.page(Kind::Tools, &look).unwrap().get().len() > 1 << 20);
            view.count(&gateway.0, &index);
            most = most.max(gateway.0.copied());
        }
    }
    // Each revision holds a MiB twice: the entries and the page.
    assert!(most <= MOST && most > MOST / 2, "{most}");
    let kept: usize = views.iter().map(|it| it.copied()).sum();
    assert!(kept <= MOST, "what is not counted is not kept: {kept}");
    drop(views);
    choose(1).index(&gateway.0);
    assert!(gateway.0.copied() < 1 << 20, "what nobody has is not counted");
}

/// What an anonymous or named caller gets when it searches for a tool.
async fn find(gateway: &Gateway, who: Option<&str>) -> String {
    let params = json!({ "name": search::FIND_TOOLS, "arguments": { "query": "log" } });
    let attached = who.map_or_else(Attached::default, |it| Attached::new(Principal::new(it)));
    let found = match begin_by(gateway, attached, "tools/call", params) {
        Answer::Now(outcome) => outcome,
        Answer::Later(later) => later.await,
    };
    found.unwrap().get().to_owned()
}

#[tokio::test]
async fn anonymous_callers_are_always_sent_schemas() {
    let plan = format!("{CATALOG}\n").replace("gateway:", "gateway:\n  automatic: {}");
    let plan = fixture::plan(&plan);
    let gateway = Gateway::open(plan, settings(None)).await.unwrap();
    let server = Arc::clone(&gateway.0.active_plan().servers["a"]);
    server.set_lists(Arc::new(offers("l")), || ());
    gateway.0.generation.fetch_add(1, Ordering::AcqRel);
    for _ in 0..2 {
        let found = find(&gateway, None).await;
        assert!(found.contains("inputSchema") && !found.contains("schemaSent"), "{found}");
    }
    assert!(!find(&gateway, Some("ann")).await.contains("schemaSent"));
    assert!(find(&gateway, Some("ann")).await.contains("schemaSent"), "she has it");
    assert!(!find(&gateway, Some("bob")).await.contains("schemaSent"), "he does not");
}

#[tokio::test]
async fn instructions_are_as_long_as_a_model_should_have_to_read() {
    let servers: Vec<_> =
        (0..6).map(|it| format!("  s{it}: {{ url: 'http://127.0.0.1:9' }}")).collect();
    let plan = format!("mcpServers:\n{}\n", servers.join("\n"));
    let plan = fixture::plan(&plan);
    let gateway = Gateway::open(plan, settings(None)).await.unwrap();
    for server in gateway.0.active_plan().servers.values() {
        let (info, capabilities) = (Implementation::new("s", "1"), ServerCapabilities::new());
        let long = Some("é".repeat(1 << 20));
        let lists = Draft::new(Revision::LATEST, info, capabilities, long).finish();
        assert!(lists.instructions.as_ref().unwrap().len() <= 64 << 10, "no more is kept");
        server.set_lists(Arc::new(lists), || ());
    }
    let told = |selector| gateway.0.instructions(&selector, &Caller::named("ann")).unwrap();
    let one = told(Selector::Server("s1".to_owned()));
    assert!(one.len() <= 64 << 10 && one.len() > 63 << 10 && one.ends_with('…'), "{}", one.len());
    let all = told(Selector::All);
    assert!(all.len() <= (64 << 10) + 100, "{}", all.len());
    assert!(all.ends_with("(The instructions of further servers were left out.)"));
    assert_eq!(all.matches("# s").count(), 3, "16 KiB of each");
}

//! What is shown of lists, to whom, and how much is kept of it.

use serde_json::json;

use super::*;
use crate::copies::MOST;

/// A page of tools, this many bytes and some more.
fn many(bytes: usize) -> crate::merge::Lists {
    let text = "x".repeat(4 << 10);
    let tool = |it| json!({ "name": format!("t{it}"), "description": text, "inputSchema": {} });
    let page = json!({ "tools": (0..bytes >> 12).map(tool).collect::<Vec<_>>() }).to_string();
    lists(Revision::V2025_06_18, &[(Kind::Tools, &page)])
}

#[tokio::test]
async fn copies_of_lists_for_whoever_chooses_are_bounded_in_bytes() {
    let gateway = open(settings(None)).await;
    let server = Arc::clone(&gateway.0.world().servers["a"]);
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
    // One has a MiB twice in each revision: the entries, and the page.
    assert!(most <= MOST && most > MOST / 2, "{most}");
    let kept: usize = views.iter().map(|it| it.copied()).sum();
    assert!(kept <= MOST, "what is not counted is not kept: {kept}");
    drop(views);
    choose(1).index(&gateway.0);
    assert!(gateway.0.copied() < 1 << 20, "what nobody has is not counted");
}

/// What somebody without a name, or with one, is told of a tool.
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
async fn what_one_without_a_name_was_sent_is_sent_to_the_next_as_well() {
    let plan = format!("{CATALOG}\n").replace("gateway:", "gateway:\n  automatic: {}");
    let plan = load(&plan, "/etc/trunkline.yaml".as_ref(), &Process).unwrap().plan;
    let gateway = Gateway::open(plan, settings(None)).await.unwrap();
    let server = Arc::clone(&gateway.0.world().servers["a"]);
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

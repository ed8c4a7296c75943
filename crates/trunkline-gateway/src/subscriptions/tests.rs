//! Which calls wait for subscriptions, who is notified, and what a reload keeps.

use super::*;
use crate::Gateway;
use crate::fixture::{plan, settings};
use crate::merge::Kind;
use crate::merge::fixture::lists;
use crate::state::GatewayState;
use trunkline_wire::revision::Revision;

/// Two servers that nobody reaches, each with a resource; `ann` may not read the second.
const CATALOG: &str = "
gateway:
  rules: [{ principals: [ann], tools: ['b.read:*'], effect: deny }]
mcpServers:
  a: { url: 'http://127.0.0.1:9/mcp' }
  b: { url: 'http://127.0.0.1:9/mcp' }
";

async fn gateway() -> Gateway {
    let gateway = Gateway::open(plan(CATALOG), settings()).await.unwrap();
    for (name, server) in &gateway.0.active_plan().servers {
        give(&gateway.0, server, &format!("x://{name}"));
    }
    gateway
}

fn give(shared: &GatewayState, server: &Server, uri: &str) {
    let page = format!(r#"{{"resources":[{{"uri":"{uri}","name":"one"}}]}}"#);
    let lists = lists(Revision::V2025_06_18, &[(Kind::Resources, &page)]);
    server.set_lists(Arc::new(lists), || {
        shared.generation.fetch_add(1, Ordering::AcqRel);
    });
}

fn join(shared: &GatewayState, name: &str, conversation: u64) -> Caller {
    let mut caller = Caller::named(name);
    caller.conversation = conversation;
    shared.subscriptions.joined(caller.clone(), &Selector::All);
    caller
}

fn want(shared: &GatewayState, conversation: u64, uri: &str) {
    shared.subscriptions.want(shared, conversation, vec![uri.to_owned()], false);
}

/// Somebody joins and wants to hear of one resource.
fn follow(shared: &GatewayState, name: &str, conversation: u64, uri: &str) {
    join(shared, name, conversation);
    want(shared, conversation, uri);
}

fn held(shared: &GatewayState) -> Vec<String> {
    shared.subscriptions.lock().held.keys().map(|it| it.server.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_only_for_what_its_caller_has_just_wanted() {
    let gateway = gateway().await;
    let shared = &*gateway.0;
    let (bob, eve) = (join(shared, "bob", 1), join(shared, "eve", 2));
    let subscriptions = &shared.subscriptions;
    want(shared, 1, "x://a");
    // The server cannot be reached, so the subscription is never in place.
    for (caller, server, waits) in
        [(&eve, "a", false), (&bob, "b", false), (&bob, "a", true), (&bob, "a", false)]
    {
        let began = Instant::now();
        subscriptions.settled(caller, server).await;
        assert_eq!(began.elapsed() >= SETTLED / 2, waits, "{:?} {server}", caller.name);
    }
}

#[tokio::test]
async fn a_caller_that_may_not_read_is_not_notified() {
    let gateway = gateway().await;
    let shared = &*gateway.0;
    follow(shared, "ann", 1, "x://b");
    assert_eq!(held(shared), Vec::<String>::new());
    follow(shared, "bob", 2, "x://b");
    assert_eq!(held(shared), ["b"]);
    // Changed rules are applied to existing subscriptions.
    gateway.apply(plan(&CATALOG.replace("[ann]", "[bob]"))).await.unwrap();
    let place = |it: u64| shared.subscriptions.lock().clients[&it].wanted["x://b"].place.is_some();
    assert_eq!((place(1), place(2)), (true, false));
    shared.subscriptions.left(shared, 1);
    assert_eq!(held(shared), Vec::<String>::new());
}

#[tokio::test]
async fn a_replaced_server_is_subscribed_to_again() {
    let gateway = gateway().await;
    let shared = &*gateway.0;
    follow(shared, "bob", 1, "x://a");
    let server = || {
        let state = shared.subscriptions.lock();
        let held = state.held.values().next().expect("one is subscribed to");
        (Weak::clone(&held.server), held.task.is_finished())
    };
    let (before, _) = server();
    gateway
        .apply(plan(
            &CATALOG.replace("a: { url: 'http://127.0.0.1:9", "a: { url: 'http://127.0.0.1:10"),
        ))
        .await
        .unwrap();
    let now = Arc::downgrade(&shared.active_plan().servers["a"]);
    assert!(!now.ptr_eq(&before));
    let (held, is_over) = server();
    assert!(held.ptr_eq(&now) && !is_over);
}

#[tokio::test]
async fn a_resource_that_appears_later_is_subscribed_to_then() {
    let gateway = gateway().await;
    let shared = &*gateway.0;
    join(shared, "bob", 1);
    gateway.apply(plan("mcpServers: {}")).await.unwrap();
    want(shared, 1, "x://a");
    assert_eq!(held(shared), Vec::<String>::new());
    gateway.apply(plan(CATALOG)).await.unwrap();
    give(shared, &shared.active_plan().servers["a"], "x://a");
    shared.subscriptions.follow(shared);
    assert_eq!(held(shared), ["a"]);
}

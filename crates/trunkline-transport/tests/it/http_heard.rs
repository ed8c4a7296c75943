//! Which conversations and notifications a server's handler hears of over HTTP, and in which order.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use trunkline_proto::{Attached, Call, PeerNotification, client, server};
use trunkline_transport::Limits;
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_transport::handler::{Answer, Handler, Listening, Nobody};
use trunkline_transport::http::client::HttpTarget;
use trunkline_transport::http::{Endpoint, Settings, bind, serve};
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{Implementation, ResourcesCapability};
use trunkline_wire::revision::{Revision, Revisions};

const PATIENCE: Duration = Duration::from_secs(10);

/// Records what happened, and in which conversation.
struct Tells(mpsc::UnboundedSender<(String, u64)>);

impl Handler for Tells {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        Nobody.call(call, handle)
    }

    fn heard(&self, heard: PeerNotification, handle: &ConversationHandle) {
        let about = heard.params.get("uri").or(heard.params.get("notifications"));
        let about = about.map(|it| format!(" {it}")).unwrap_or_default();
        let _ = self.0.send((format!("{}{about}", heard.method), handle.number()));
    }

    fn listen(&self, handle: &ConversationHandle, _: &Attached) -> Listening {
        let _ = self.0.send(("listens".to_owned(), handle.number()));
        Some(Box::new(Leaves(self.0.clone(), handle.number())))
    }
}

struct Leaves(mpsc::UnboundedSender<(String, u64)>, u64);

impl Drop for Leaves {
    fn drop(&mut self) {
        let _ = self.0.send(("leaves".to_owned(), self.1));
    }
}

struct Told {
    told: mpsc::UnboundedReceiver<(String, u64)>,
    url: String,
}

impl Told {
    async fn start() -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let listener = bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mut core = server::Config::new(Implementation::new("travel", "1.0"));
        core.capabilities.resources = Some(ResourcesCapability::new().subscribe(true));
        let settings = Settings::new(Limits::default());
        let endpoint = Endpoint::new(Arc::new(core), Arc::new(Tells(tell)), settings);
        tokio::spawn(serve(listener, endpoint, Limits::default(), std::future::pending()));
        Self { told, url }
    }

    async fn connect(&self, revision: Revision) -> Connection {
        let mut config = client::Config::new(Implementation::new("host", "1.0"));
        config.revisions = Revisions::only(revision);
        let (target, limits) = (HttpTarget::new(&self.url).verdicts(None), Limits::default());
        Connection::open_http(Arc::new(config), Arc::new(Nobody), target, limits).await.unwrap()
    }

    async fn next(&mut self) -> (String, u64) {
        timeout(PATIENCE, self.told.recv()).await.expect("something happens").unwrap()
    }
}

fn params(text: &str) -> Object {
    Object::parse(text).unwrap()
}

#[tokio::test]
async fn a_session_is_listened_to_before_it_says_anything_and_until_its_end() {
    let mut told = Told::start().await;
    let connection = told.connect(Revision::LATEST_STATEFUL).await;
    let (first, session) = told.next().await;
    assert_eq!(first, "listens");
    assert_eq!(told.next().await, ("notifications/initialized".to_owned(), session));
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let request = Request::new(method, params(r#"{"uri":"file:///a","x":1}"#));
        connection.call(request).await.unwrap();
        assert_eq!(told.next().await, (format!("{method} \"file:///a\""), session));
    }
    let other = told.connect(Revision::LATEST_STATEFUL).await;
    let (listens, number) = told.next().await;
    assert_eq!(listens, "listens");
    assert_ne!(number, session, "another conversation");
    assert_eq!(told.next().await, ("notifications/initialized".to_owned(), number));
    connection.close().await;
    assert_eq!(told.next().await, ("leaves".to_owned(), session));
    other.close().await;
    assert_eq!(told.next().await, ("leaves".to_owned(), number));
}

#[tokio::test]
async fn a_subscription_of_2026_07_28_is_a_conversation_of_its_own() {
    let mut told = Told::start().await;
    let connection = told.connect(Revision::LATEST).await;
    let filter = r#"{"notifications":{"resourceSubscriptions":["file:///a"]}}"#;
    let mut request = Request::new("subscriptions/listen", params(filter));
    let (heard, mut hears) = mpsc::channel(8);
    request.heard = Some(heard);
    let listening = tokio::spawn(connection.call(request));
    let (first, number) = told.next().await;
    assert_eq!(first, "listens");
    let agreed = r#"subscriptions/listen {"resourceSubscriptions":["file:///a"]}"#;
    assert_eq!(told.next().await, (agreed.to_owned(), number));
    let heard: PeerNotification =
        timeout(PATIENCE, hears.recv()).await.expect("it is acknowledged").unwrap();
    assert_eq!(heard.method, "notifications/subscriptions/acknowledged");
    listening.abort();
    assert_eq!(told.next().await, ("leaves".to_owned(), number));
}

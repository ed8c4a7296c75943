//! Messages on the stream of a POST, and the call they are attributed to.

use std::sync::Mutex;

use tokio::sync::mpsc;
use trunkline_proto::{Attached, Call, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler};
use trunkline_wire::model::RootsCapability;

use super::script::{data, end, events};
use super::*;

/// Records whose question each one is, and the log messages.
#[derive(Default)]
struct Notes {
    asked: Mutex<Vec<Option<&'static str>>>,
    logged: Mutex<Vec<PeerNotification>>,
}

impl Handler for Notes {
    fn call(&self, call: Call, _: &ConversationHandle) -> Answer {
        self.asked.lock().unwrap().push(call.attached.get::<&str>().copied());
        Answer::Now(Ok(Json::parse(r#"{"roots":[]}"#).unwrap()))
    }

    fn heard(&self, heard: PeerNotification, _: &ConversationHandle) {
        self.logged.lock().unwrap().push(heard);
    }
}

#[tokio::test]
async fn questions_and_logs_on_the_stream_of_a_call_are_its_own() {
    // Each caller gets a `roots/list` and a log message, while another waits.
    let script = stateful(|seen, n| match seen.what() {
        "tools/call" if n == 0 => vec![Step::Hang],
        "tools/call" => {
            let caller = &seen.body["params"]["name"];
            let log = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{caller}}}}}"#
            );
            let ask = format!(r#"{{"jsonrpc":"2.0","id":{caller},"method":"roots/list"}}"#);
            let (log, ask, answer) = (data(log), data(ask), data(seen.result(DONE)));
            let mut steps = events(format!("{log}{ask}{answer}"));
            steps.push(end());
            steps
        }
        "GET" => vec![],
        _ => accepted(),
    })
    .await;
    let mut config = Config::new(Implementation::new("test", "1"));
    config.capabilities.roots = Some(RootsCapability::new(false));
    let notes = Arc::new(Notes::default());
    let (config, limits) = (Arc::new(config), Limits::default());
    let opening = Connection::open_http(config, Arc::clone(&notes), target(&script), limits);
    let connection = opening.await.unwrap();
    let call = |caller: &'static str| {
        let params = Object::parse(&format!(r#"{{"name":"{caller}"}}"#)).unwrap();
        let (heard, mut hears) = mpsc::channel(8);
        let mut request = Request::new("tools/call", params);
        (request.attached, request.heard) = (Attached::new(caller), Some(heard));
        let calling = connection.call(request);
        async move {
            tokio::time::timeout(Duration::from_secs(20), calling).await.unwrap().unwrap();
            let heard: PeerNotification = hears.recv().await.expect("the log reaches the call");
            assert_eq!(heard.params.get("data").unwrap().get(), format!("\"{caller}\""));
        }
    };
    let waiting = tokio::spawn(connection.call(Request::new("tools/call", Object::default())));
    script.nth("tools/call", 0).await;
    tokio::join!(call("alice"), call("bob"));
    waiting.abort();
    let mut asked = notes.asked.lock().unwrap().clone();
    asked.sort_unstable();
    assert_eq!(asked, [Some("alice"), Some("bob")]);
    let logged = notes.logged.lock().unwrap();
    assert_eq!(logged.len(), 2, "the handler hears the log as well: {logged:?}");
    assert!(logged.iter().all(|it| it.ticket.is_some()));
}

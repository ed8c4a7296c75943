//! Which messages may trigger a login, and who learns of it.

use std::sync::Mutex;

use http::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trunkline_auth::credentials::{
    Asked, Credentials, Denied, Headers, Refused as Refusal, Retry, Target,
};
use trunkline_auth::fetch::Pending;
use trunkline_wire::jsonrpc::{Message, Params};

use super::*;
use crate::http::client::HttpTarget;
use crate::limits::Limits;

/// Always fails to log in, and records whether a login was allowed.
#[derive(Default)]
struct Eager(Mutex<Vec<bool>>);

impl Credentials for Eager {
    fn headers<'a>(&'a self, _: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn refused<'a>(&'a self, _: Target<'a>, _: Refusal<'a>, people: Asked<'a>) -> Retry<'a> {
        self.0.lock().expect("nobody panics").push(people.is_some());
        if let Some(people) = people {
            people(true);
            people(false);
        }
        Box::pin(async { Err(Denied::new("Nobody logs in.")) })
    }

    fn nonce(&self, _: Target<'_>, _: &str) {}
}

struct Fixture {
    post: Arc<Post>,
    route: Arc<Route>,
    eager: Arc<Eager>,
    reports: mpsc::Receiver<DeliveryEvent>,
    people: mpsc::UnboundedReceiver<(u64, bool)>,
}

impl Fixture {
    /// In front of a server that refuses everybody.
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it has an address"));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"{}") {
                    stream.read_buf(&mut head).await.expect("the client sends a whole request");
                }
                let refusal = b"HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(refusal).await.expect("the client reads");
            }
        });
        let (limits, target) = (Limits::default(), HttpTarget::new(&*url));
        let (tell, reports) = mpsc::channel(1);
        let (tell_people, people) = mpsc::unbounded_channel();
        let pool = Arc::new(Pool::new(&target, &limits).expect("there is nothing to be wrong"));
        let patience = limits.call_deadline;
        let post = Post { pool, reports: tell, people: tell_people, message_bytes: 1000, patience };
        let eager = Arc::new(Eager::default());
        let address = Address::parse(&url).expect("it is one");
        let route = Route::new(address, HeaderMap::new(), Some(eager.clone()));
        Self { post: Arc::new(post), route: Arc::new(route), eager, reports, people }
    }

    async fn carry(&mut self, id: Option<i64>) -> End {
        let request = PostRequest {
            id,
            method: "tools/call".into(),
            message: Message::notification(Method::Initialized, Params::Absent),
            text: Some(b"{}".to_vec().into()),
            headers: Arc::default(),
            not_before: None,
            is_second_try: false,
            is_ping: false,
        };
        Arc::clone(&self.post).carry(Arc::clone(&self.route), request, 7).await
    }
}

#[tokio::test]
async fn a_message_without_an_answer_triggers_no_login() {
    let mut fixture = Fixture::new().await;
    for (id, expected) in [(None, false), (Some(1), true)] {
        let end = fixture.carry(id).await;
        assert!(matches!(end, End::Failed(CallError::Credentials(_))), "{end:?}");
        assert_eq!(fixture.eager.0.lock().expect("nobody panics").pop(), Some(expected));
    }
}

#[tokio::test]
async fn a_login_is_reported_even_if_the_other_queue_is_full() {
    let mut fixture = Fixture::new().await;
    let other = DeliveryEvent { post: 1, kind: EventKind::End(End::Accepted) };
    fixture.post.reports.try_send(other).expect("there is room for one");
    fixture.carry(Some(1)).await;
    assert_eq!(fixture.people.try_recv(), Ok((7, true)));
    assert_eq!(fixture.people.try_recv(), Ok((7, false)));
    assert_eq!(fixture.reports.try_recv().map(|it| it.post).ok(), Some(1));
}

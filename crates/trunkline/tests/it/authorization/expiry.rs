//! A listening client renews its token when it expires, and keeps listening.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::time::{advance, pause, resume};
use trunkline::model::SubscriptionFilter;
use trunkline::server::bind;
use trunkline::server::protect::Gate;
use trunkline::{Change, Client, Era, Revision, Server};
use trunkline_auth::credentials::{Asked, Credentials, Denied, Headers, Refused, Retry, Target};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};

use super::issuer::Issuer;
use crate::server::soon;

/// A new short-lived token for every request.
struct Fresh {
    issuer: Issuer,
    given: AtomicUsize,
}

impl Credentials for Fresh {
    fn headers<'a>(&'a self, _: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = self.issuer.claims("alice", "mcp");
        (claims["iat"], claims["exp"]) = (json!(now), json!(now + LIFE.as_secs()));
        self.given.fetch_add(1, Ordering::SeqCst);
        let token = self.issuer.sign(&claims);
        Box::pin(async move { Ok(vec![("authorization", format!("Bearer {token}"))]) })
    }

    fn refused<'a>(&'a self, _: Target<'a>, _: Refused<'a>, _: Asked<'a>) -> Retry<'a> {
        Box::pin(async { Err(Denied::new("The token is no good.")) })
    }

    fn nonce(&self, _: Target<'_>, _: &str) {}
}

/// The real clock, with nothing to fetch.
struct Today;

impl Fetch for Today {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        panic!("nothing needs to be fetched here: {ask:?}")
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

#[tokio::test]
async fn a_listening_client_outlives_its_token() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let fresh = Arc::new(Fresh { issuer: Issuer::new(), given: AtomicUsize::new(0) });
        let server = Server::builder("clock", "1.0.0").tools_later().build();
        let gate = Gate::new(fresh.issuer.protect(), Arc::new(Today)).unwrap();
        let listener = bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(server.http().gate(gate).serve(listener, std::future::pending()));

        let builder = Client::builder("host", "1.0.0").credentials(fresh.clone());
        let client = builder.protocol(revision).connect_http(&*url).await.unwrap();
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let mut listener = client.listen(filter).await.unwrap();
        // A session gets notifications only after `notifications/initialized`.
        if revision.era() == Era::Stateful {
            soon(client.ping().into_future()).await.unwrap();
        }
        server.changed(Change::Tools).await;
        assert_eq!(soon(listener.next()).await, Some(Change::Tools), "{revision}");

        // While a blocking task runs, only the test advances the clock.
        let (held, wait) = channel::<()>();
        tokio::task::spawn_blocking(move || wait.recv());
        pause();
        let before = fresh.given.load(Ordering::SeqCst);
        for _ in 0..30 {
            advance(LIFE / 30).await;
            settle().await;
        }
        assert_eq!(fresh.given.load(Ordering::SeqCst), before, "{revision}: its time is not over");
        while fresh.given.load(Ordering::SeqCst) == before {
            advance(Duration::from_secs(1)).await;
            settle().await;
        }
        // The earlier stream is gone, so the change arrives on the new one.
        let change = loop {
            server.changed(Change::Tools).await;
            tokio::select! {
                biased;
                change = listener.next() => break change,
                () = settle() => advance(Duration::from_millis(100)).await,
            }
        };
        assert_eq!(change, Some(Change::Tools), "{revision}");
        resume();
        drop(held);
        client.close().await;
    }
}

/// Lets every task that was woken run.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

const LIFE: Duration = Duration::from_secs(600);

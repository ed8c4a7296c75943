//! Calls as streams, dropped calls, and calls without an answer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;
use trunkline::client::{CallError, CallStream, Event};
use trunkline::model::{CompleteParams, LogLevel, Reference, SubscriptionFilter};
use trunkline::testing::{Transport, run};
use trunkline::{Context, Server, Timing, tool};

use crate::client_peer::{ERAS, builder, open};
use crate::server::soon;

const TRANSPORTS: [Transport; 3] = [Transport::Memory, Transport::Stdio, Transport::Http];

#[derive(Serialize, Deserialize, JsonSchema, Debug, PartialEq)]
struct Steps {
    steps: u32,
}

/// A server whose tool `hang` signals when it starts and when it is dropped.
#[derive(Clone, Default)]
struct Watch {
    begun: Arc<Notify>,
    stopped: Arc<Notify>,
}

struct Told(Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Watch {
    fn server(&self) -> Server {
        let watch = self.clone();
        let hang = move |cx: Context| {
            let watch = watch.clone();
            async move {
                let _told = Told(watch.stopped);
                cx.progress(1.0, 3.0).await;
                watch.begun.notify_one();
                std::future::pending::<String>().await
            }
        };
        let count = async |cx: Context| {
            for step in 1..=3 {
                cx.progress(f64::from(step), 3.0).await;
            }
            trunkline::Json(Steps { steps: 3 })
        };
        Server::builder("stream", "1.0.0")
            .tool(tool("hang", hang))
            .tool(tool("count", count))
            .build()
    }
}

#[test]
fn progress_comes_as_a_stream_in_order_and_then_the_result() {
    for revision in ERAS {
        for transport in TRANSPORTS {
            let watch = Watch::default();
            let server = || watch.server();
            run(revision, transport, server, async |peer| {
                let mut stream: CallStream<Steps> = peer.call("count", json!({})).stream();
                for step in 1..=3 {
                    let Some(Event::Progress(it)) = stream.next().await else { panic!("{step}") };
                    assert_eq!((it.progress, it.total), (f64::from(step), Some(3.0)));
                }
                assert_eq!(stream.next().await, Some(Event::Done(Ok(Steps { steps: 3 }))));
                assert_eq!(stream.next().await, None);
                assert_eq!(stream.next().await, None);
            });
        }
    }
}

#[tokio::test]
async fn a_call_stream_is_a_stream() {
    let client = trunkline::Client::in_memory(&Watch::default().server()).await.unwrap();
    let mut stream = client.call_tool("count", ()).stream();
    let mut events = 0;
    while let Some(event) = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
        events += 1;
        assert_eq!(matches!(event, Event::Done(Ok(_))), events == 4);
    }
    assert_eq!(events, 4);
}

#[test]
fn a_dropped_call_stops_its_handler_in_both_eras_over_every_transport() {
    for revision in ERAS {
        for transport in TRANSPORTS {
            for as_stream in [false, true] {
                let watch = Watch::default();
                let server = || watch.server();
                run(revision, transport, server, async |peer| {
                    if as_stream {
                        let mut stream = peer.call_tool("hang", ()).stream();
                        let first = soon(stream.next()).await;
                        assert!(matches!(first, Some(Event::Progress(_))), "{first:?}");
                        soon(watch.begun.notified()).await;
                    } else {
                        tokio::select! {
                            _ = peer.call_tool("hang", ()).into_future() => panic!("it ended"),
                            () = watch.begun.notified() => {}
                        }
                    }
                    soon(watch.stopped.notified()).await;
                    if transport != Transport::Http {
                        peer.ping().await.unwrap();
                        let transcript = peer.transcript().outline();
                        assert!(transcript.contains("> notifications/cancelled"), "{transcript}");
                    }
                });
            }
        }
    }
}

#[tokio::test]
async fn every_call_has_a_deadline_by_default() {
    let short = Timing { idle: Duration::from_millis(20), hard: Duration::from_millis(40) };
    for revision in ERAS {
        let (client, _peer) = open(builder().timing(short), revision).await;
        let completion = CompleteParams::new(Reference::prompt("p"), "a", "");
        let filter = SubscriptionFilter::new().resource_subscriptions(vec!["x:y".to_owned()]);
        let skills = client.list_skills().await.err();
        let outcomes = [
            ("ping", client.ping().await.err()),
            ("list_tools", client.list_tools().await.err()),
            ("list_resources", client.list_resources().await.err()),
            ("list_templates", client.list_resource_templates().await.err()),
            ("list_prompts", client.list_prompts().await.err()),
            ("call_tool", client.call_tool("x", ()).await.err()),
            ("call", client.call::<u8>("x", ()).await.err()),
            ("call_tool_task", client.call_tool_task("x", ()).await.err()),
            ("read_resource", client.read_resource("x:y").await.err()),
            ("get_prompt", client.get_prompt("p", [("a", "b")]).await.err()),
            ("complete", client.complete(completion).await.err()),
            ("get_task", client.get_task("t").await.err()),
            ("task_result", client.task_result("t").await.err()),
            ("cancel_task", client.cancel_task("t").await.err()),
            // It may be silent for days once it is acknowledged, but not before.
            ("listen", client.listen(filter).await.err()),
        ];
        for (method, error) in outcomes {
            assert_eq!(error, Some(CallError::TimedOut), "{method} in {revision}");
        }
        // The scripted server does not declare them, so no request is sent.
        assert!(matches!(skills, Some(CallError::Refused(_) | CallError::TimedOut)), "{skills:?}");
        let level = client.set_log_level(LogLevel::Info).await;
        let is_sent = revision.era() == trunkline::Era::Stateful;
        assert_eq!(level.err(), is_sent.then_some(CallError::TimedOut));
    }
}

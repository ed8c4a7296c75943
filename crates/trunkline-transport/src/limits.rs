//! Every size, count and time that bounds what a peer can cost us, in one struct.

use std::time::Duration;

use trunkline_proto::{Bounds, Timing};

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// What a peer may cost. The defaults suit a desktop host and a small server alike.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            $(
                #[doc = concat!("The same limits with another `", stringify!($name), "`.")]
                #[must_use]
                pub fn $name(mut self, value: $kind) -> Self {
                    self.$name = value;
                    self
                }
            )*
        }
    };
}

limits! {
    /// The longest message read: 16 MiB. A longer one is thrown away as it comes and answered with
    /// an error; the connection goes on.
    message_bytes: usize = trunkline_wire::frame::DEFAULT_LIMIT;
    /// Answers that the peer has not read yet: 1 MiB. Past that no more is read from it.
    unsent_bytes: usize = 1 << 20;
    /// Messages that wait to be sent; past that the sender waits: 1024. Each KiB counts as a message
    /// more, so what waits has at most as many KiB.
    queue: usize = 1024;
    /// Calls of a peer that run at once: 64. One more is answered with `overloaded`.
    in_flight: usize = Bounds::DEFAULT.in_flight;
    /// How long a call may take without news: 60 s. Progress starts it anew.
    call_deadline: Duration = Bounds::DEFAULT.call.idle;
    /// How long a call may take, whatever its progress: 10 min.
    hard_deadline: Duration = Bounds::DEFAULT.call.hard;
    /// How long a server may take to get ready: 30 s.
    init_deadline: Duration = Bounds::DEFAULT.open;
    /// How long open calls may go on once the peer has hung up: 1 s.
    drain: Duration = Duration::from_secs(1);
    /// How long a child may take to leave once its stdin is closed: 2 s. Then it gets SIGTERM.
    stop_after_eof: Duration = Duration::from_secs(2);
    /// How long a child may take to leave after SIGTERM: 2 s. Then it gets SIGKILL.
    stop_after_term: Duration = Duration::from_secs(2);
    /// The longest line of a log, in bytes: 8 KiB. The rest is cut with `…`.
    log_line: usize = 8 << 10;
    /// Lines of a child's stderr that are remembered: 50.
    stderr_lines: usize = 50;
    /// Bytes of a child's stderr that are remembered: 8 KiB.
    stderr_bytes: usize = 8 << 10;
    /// Pages of one list that are followed: 64.
    list_pages: usize = 64;
    /// Items of one list that are kept: 10,000.
    list_items: usize = 10_000;
    /// Rounds of questions within one call: 10.
    input_rounds: u32 = Bounds::DEFAULT.rounds;
    /// What a call may keep between its rounds, in bytes: 32 KiB.
    state_bytes: usize = 32 << 10;
    /// Subscriptions of one peer: 1024.
    subscriptions: usize = Bounds::DEFAULT.subscriptions;
    /// Answers that a client keeps for as long as their server allows: 1,000; 0 keeps none.
    cache_entries: usize = 1000;
    /// What those answers may have in bytes, all together: 8 MiB.
    cache_bytes: usize = 8 << 20;
    /// HTTP: the longest body of a request, counted as it comes: 4 MiB. A longer one gets 413.
    body_bytes: usize = 4 << 20;
    /// HTTP: the bodies of all requests together, as far as they have come, until their calls are
    /// answered: 24 MiB. More get 503.
    bodies_bytes: usize = 24 << 20;
    /// HTTP: how much of that one caller may take, where callers have names: 8 MiB. More get 429.
    bodies_share: usize = 8 << 20;
    /// HTTP: all headers of a request together: 64 KiB. More get 431.
    header_bytes: usize = 64 << 10;
    /// HTTP: how long the head of a request may take: 10 s. Then 408, and the connection ends.
    header_read: Duration = Duration::from_secs(10);
    /// HTTP: how long the body of a request may take: 30 s. Then 408, and the connection ends.
    body_read: Duration = Duration::from_secs(30);
    /// HTTP: how long a connection may do nothing: 60 s.
    keep_alive: Duration = Duration::from_secs(60);
    /// HTTP: how long a connection is read from after its last answer, if the peer is still sending
    /// a body that nobody wants (lingering close): 5 s. It counts as a connection until then.
    linger: Duration = Duration::from_secs(5);
    /// HTTP: how much of such a body is read and dropped: 16 MiB.
    linger_bytes: usize = 16 << 20;
    /// HTTP: connections at once: 16,384. More wait to be accepted.
    connections: usize = 16_384;
    /// HTTP: calls of all clients that run at once: 10,000. One more gets 429.
    calls: usize = 10_000;
    /// HTTP: how many of the second half of them one caller may have, where callers have names: 2,500.
    /// One more gets 429.
    calls_share: usize = 2_500;
    /// HTTP: the answers of all calls that nobody has read yet, in bytes: 24 MiB. While there are more,
    /// requests get 503 before anything is done. Short ones are not counted.
    answers_bytes: usize = 24 << 20;
    /// HTTP: how much of that may be one caller's, where callers have names: 8 MiB. While there is more,
    /// its requests get 429.
    answers_share: usize = 8 << 20;
    /// HTTP: sessions at once: 10,000. One more gets 503.
    sessions: usize = 10_000;
    /// HTTP: how many of them one caller may have, where callers have names: 2,500. One more gets
    /// 429.
    sessions_share: usize = 2_500;
    /// HTTP: the URIs that all callers are subscribed to, in bytes: 4 MiB. More get 503.
    subscribed_bytes: usize = 4 << 20;
    /// HTTP: how much of that one caller may take, where callers have names: 512 KiB. More get
    /// 429.
    subscribed_share: usize = 512 << 10;
    /// HTTP: how long a session may do nothing: 30 min. Then it is gone, and its id gets 404.
    session_idle: Duration = Duration::from_secs(30 * 60);
    /// HTTP: how often sessions that did nothing are looked for: 30 s.
    session_sweep: Duration = Duration::from_secs(30);
    /// HTTP: events of one stream that can be asked for again: 256.
    replay_events: usize = 256;
    /// HTTP: bytes of one stream that can be asked for again: 1 MiB.
    replay_bytes: usize = 1 << 20;
    /// HTTP: how long a stream that is over can be asked for again: 60 s.
    replay_keep: Duration = Duration::from_secs(60);
    /// HTTP: how often a silent stream shows that it is alive: 15 s.
    stream_keep_alive: Duration = Duration::from_secs(15);
    /// HTTP: how long open calls may go on once the server should end: 30 s.
    shutdown: Duration = Duration::from_secs(30);
    /// HTTP/2: requests at once on one connection: 100.
    h2_streams: u32 = 100;
    /// HTTP, of a client: how long it may take to reach a server, its TLS handshake included: 10 s.
    connect: Duration = Duration::from_secs(10);
    /// HTTP, of a client: requests on their way at once, subscriptions among them: 1024. More wait.
    requests: usize = 1024;
    /// HTTP, of a client: connections kept for the next request: 32. The oldest goes for another.
    idle_connections: usize = 32;
    /// HTTP, of a client: how long such a connection is kept: 90 s.
    idle_connection: Duration = Duration::from_secs(90);
}

impl Limits {
    /// The part that bounds the conversation itself.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            call: Timing { idle: self.call_deadline, hard: self.hard_deadline },
            open: self.init_deadline,
            in_flight: self.in_flight,
            subscriptions: self.subscriptions,
            rounds: self.input_rounds,
            ..Bounds::DEFAULT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setter_changes_its_own_field_alone() {
        let limits = Limits::default().call_deadline(Duration::from_secs(1));
        let expected = Limits { call_deadline: Duration::from_secs(1), ..Limits::default() };
        assert_eq!(limits, expected);
    }

    #[test]
    fn limits_that_nobody_changed_bound_a_conversation_as_it_bounds_itself() {
        assert_eq!(Limits::default().bounds(), Bounds::DEFAULT);
    }

    #[test]
    fn a_child_is_gone_within_five_seconds() {
        let limits = Limits::default();
        assert!(limits.stop_after_eof + limits.stop_after_term < Duration::from_secs(5));
    }
}

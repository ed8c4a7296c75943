//! Every bound on what a peer can cost us, in one struct.

use std::time::Duration;

use trunkline_proto::{Bounds, Timing};

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// The bounds on a peer. The defaults suit a desktop host and a small server alike.
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
    /// The longest message read: 16 MiB. A longer one is discarded as it arrives and answered with an
    /// error; the connection continues.
    message_bytes: usize = trunkline_wire::frame::DEFAULT_LIMIT;
    /// Bytes of answers that the peer has not read yet (high-water mark): 1 MiB. Beyond it we stop
    /// reading.
    unsent_bytes: usize = 1 << 20;
    /// Messages in the send queue: 1024; beyond it senders wait. Each KiB counts as one more message,
    /// so the queue holds at most as many KiB.
    queue: usize = 1024;
    /// Concurrent calls of a peer: 64. One more is answered with `overloaded`.
    in_flight: usize = Bounds::DEFAULT.in_flight;
    /// Idle deadline of a call: 60 s. Progress restarts it.
    call_deadline: Duration = Bounds::DEFAULT.call.idle;
    /// Hard deadline of a call, whatever its progress: 10 min.
    hard_deadline: Duration = Bounds::DEFAULT.call.hard;
    /// How long the handshake with a server may take: 30 s.
    init_deadline: Duration = Bounds::DEFAULT.open;
    /// How long open calls may continue after the peer has hung up (drain): 1 s.
    drain: Duration = Duration::from_secs(1);
    /// How long a child may take to exit once its stdin is closed: 2 s. Then it gets SIGTERM.
    stop_after_eof: Duration = Duration::from_secs(2);
    /// How long a child may take to exit after SIGTERM: 2 s. Then it gets SIGKILL.
    stop_after_term: Duration = Duration::from_secs(2);
    /// The longest log line in bytes: 8 KiB. A longer one is truncated with `…`.
    log_line: usize = 8 << 10;
    /// Lines of a child's stderr that are kept: 50.
    stderr_lines: usize = 50;
    /// Bytes of a child's stderr that are kept: 8 KiB.
    stderr_bytes: usize = 8 << 10;
    /// Pages of one list that are fetched: 64.
    list_pages: usize = 64;
    /// Items of one list that are kept: 10,000.
    list_items: usize = 10_000;
    /// Rounds of questions within one call: 10.
    input_rounds: u32 = Bounds::DEFAULT.rounds;
    /// The state that a call may keep between its rounds, in bytes: 32 KiB.
    state_bytes: usize = 32 << 10;
    /// Subscriptions of one peer: 1024.
    subscriptions: usize = Bounds::DEFAULT.subscriptions;
    /// Answers in a client's cache, for as long as their TTL: 1,000; 0 disables the cache.
    cache_entries: usize = 1000;
    /// Bytes of those answers together: 8 MiB.
    cache_bytes: usize = 8 << 20;
    /// HTTP: the longest body of a request, counted as it arrives: 4 MiB. A longer one gets 413.
    body_bytes: usize = 4 << 20;
    /// HTTP: the received bytes of all request bodies together, until their calls are answered: 24 MiB.
    /// More get 503.
    bodies_bytes: usize = 24 << 20;
    /// HTTP: the share of one named caller in that: 8 MiB. More get 429.
    bodies_share: usize = 8 << 20;
    /// HTTP: all headers of a request together: 64 KiB. More get 431.
    header_bytes: usize = 64 << 10;
    /// HTTP: how long the head of a request may take: 10 s. Then 408, and the connection ends.
    header_read: Duration = Duration::from_secs(10);
    /// HTTP: how long the body of a request may take: 30 s. Then 408, and the connection ends.
    body_read: Duration = Duration::from_secs(30);
    /// HTTP: how long a connection may be idle: 60 s.
    keep_alive: Duration = Duration::from_secs(60);
    /// HTTP: how long a connection is read after its last answer while the peer is still sending an
    /// unwanted body (lingering close): 5 s. It counts as a connection until then.
    linger: Duration = Duration::from_secs(5);
    /// HTTP: how much of such a body is read and discarded: 16 MiB.
    linger_bytes: usize = 16 << 20;
    /// HTTP: concurrent connections: 16,384. More wait in the accept queue.
    connections: usize = 16_384;
    /// HTTP: concurrent calls of all clients: 10,000. One more gets 429.
    calls: usize = 10_000;
    /// HTTP: the share of one named caller in the second half of them: 2,500. One more gets 429.
    calls_share: usize = 2_500;
    /// HTTP: bytes of all answers that clients have not read yet: 24 MiB. Beyond it, requests get 503
    /// before they have any effect. Short answers are not counted.
    answers_bytes: usize = 24 << 20;
    /// HTTP: the share of one named caller in that: 8 MiB. Beyond it, its requests get 429.
    answers_share: usize = 8 << 20;
    /// HTTP: concurrent sessions: 10,000. One more gets 503.
    sessions: usize = 10_000;
    /// HTTP: the share of one named caller in them: 2,500. One more gets 429.
    sessions_share: usize = 2_500;
    /// HTTP: bytes of the URIs that all callers are subscribed to: 4 MiB. More get 503.
    subscribed_bytes: usize = 4 << 20;
    /// HTTP: the share of one named caller in that: 512 KiB. More get 429.
    subscribed_share: usize = 512 << 10;
    /// HTTP: how long a session may be idle: 30 min. Then it ends, and its id gets 404.
    session_idle: Duration = Duration::from_secs(30 * 60);
    /// HTTP: the interval between sweeps for idle sessions: 30 s.
    session_sweep: Duration = Duration::from_secs(30);
    /// HTTP: events of one stream that can be replayed: 256.
    replay_events: usize = 256;
    /// HTTP: bytes of one stream that can be replayed: 1 MiB.
    replay_bytes: usize = 1 << 20;
    /// HTTP: how long a finished stream can be replayed: 60 s.
    replay_keep: Duration = Duration::from_secs(60);
    /// HTTP: the interval of keep-alive comments on a quiet stream: 15 s.
    stream_keep_alive: Duration = Duration::from_secs(15);
    /// HTTP: how long open calls may continue after shutdown begins: 30 s.
    shutdown: Duration = Duration::from_secs(30);
    /// HTTP/2: concurrent requests on one connection: 100.
    h2_streams: u32 = 100;
    /// HTTP client: how long connecting may take, the TLS handshake included: 10 s.
    connect: Duration = Duration::from_secs(10);
    /// HTTP client: requests in flight, subscriptions included: 1024. More wait.
    requests: usize = 1024;
    /// HTTP client: idle connections in the pool: 32. One more replaces the oldest.
    idle_connections: usize = 32;
    /// HTTP client: how long an idle connection is kept: 90 s.
    idle_connection: Duration = Duration::from_secs(90);
}

impl Limits {
    /// The bounds of the conversation itself.
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
    fn default_limits_equal_the_default_bounds_of_a_conversation() {
        assert_eq!(Limits::default().bounds(), Bounds::DEFAULT);
    }

    #[test]
    fn a_child_is_gone_within_five_seconds() {
        let limits = Limits::default();
        assert!(limits.stop_after_eof + limits.stop_after_term < Duration::from_secs(5));
    }
}

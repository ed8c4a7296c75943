//! How long everything lasts, and why that is enough.

use std::time::Duration;

/// The durations that leases, takeovers and heartbeats go by.
///
/// The promise that a session has one owner rests on their proportions, for clocks that run at 0.9 to 1.1 times the
/// true rate:
///
/// - `lease / 0.9 < heartbeat_ttl / 1.1`: a heartbeat outlives the lease it gives.
/// - `lease / 0.9 < promise / 1.1`: so does the promise of a peer that vouches.
/// - `vouch_limit / 0.9 < roster_ttl / 1.1`: a roster outlives every lease that rests on it.
/// - `settle / 1.1` is longer than what the store may lose in a failover.
/// - `suspicion * 1.1 < heartbeat_ttl / 1.1`: no heartbeat begins and ends within one suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// How often a replica writes its heartbeat and reads the others'.
    pub heartbeat: Duration,
    /// How long a heartbeat lasts in the store.
    pub heartbeat_ttl: Duration,
    /// How soon a failed heartbeat or round of pings is tried again.
    pub retry: Duration,
    /// How long a replica may answer after it sent the heartbeat, or the pings, that gave the lease.
    pub lease: Duration,
    /// How long a peer that vouches for a replica takes nothing over from it.
    pub promise: Duration,
    /// How long a peer that refuses to vouch for a replica stays with it.
    pub refusal: Duration,
    /// How long after a write a read proves that a failover cannot lose it. It must exceed the replication lag of
    /// the store.
    pub settle: Duration,
    /// How long an answer to a store operation or a ping may take.
    pub patience: Duration,
    /// How long it may take to find a replica dead.
    pub suspicion: Duration,
    /// How long peers that vouch for each other go on while the store is away.
    pub vouch_limit: Duration,
    /// How long a roster lasts in the store.
    pub roster_ttl: Duration,
    /// How often a roster is written although it is unchanged.
    pub roster_refresh: Duration,
    /// How often the record of a session in use is written although it is unchanged.
    pub touch: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            heartbeat: ms(1_500),
            heartbeat_ttl: ms(5_000),
            retry: ms(500),
            lease: ms(4_000),
            promise: ms(5_000),
            refusal: ms(10_000),
            settle: ms(200),
            patience: ms(1_000),
            suspicion: ms(3_500),
            vouch_limit: ms(300_000),
            roster_ttl: ms(375_000),
            roster_refresh: ms(60_000),
            touch: ms(30_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proportions_hold_for_clocks_between_nine_and_eleven_tenths() {
        let it = Timing::default();
        let (slow, fast) = (|time: Duration| time.div_f64(0.9), |time: Duration| time.div_f64(1.1));
        assert!(slow(it.lease) < fast(it.heartbeat_ttl));
        assert!(slow(it.lease) < fast(it.promise));
        assert!(slow(it.vouch_limit) < fast(it.roster_ttl));
        assert!(fast(it.settle) > Duration::from_millis(100));
        assert!(it.suspicion.div_f64(0.9) < fast(it.heartbeat_ttl));
        assert!(slow(it.suspicion) < fast(it.refusal));
    }
}

//! What a measurement counted → its figures.

use std::time::Duration;

use crate::round;

pub struct Measured {
    pub calls: u64,
    pub wall: Duration,
    pub server_cpu: Duration,
    pub driver_cpu: Duration,
    /// One per call, or none where calls overlap.
    pub latencies: Vec<Duration>,
}

impl Measured {
    pub fn calls_per_s(&self) -> f64 {
        round(self.calls as f64 / self.wall.as_secs_f64())
    }

    /// The share of one call in a time, in microseconds.
    pub fn per_call(&self, time: Duration) -> f64 {
        round(time.as_secs_f64() * 1e6 / self.calls as f64)
    }

    /// The latency that this share of the calls did not exceed, in microseconds, once they are sorted.
    pub fn latency(&self, share: f64) -> f64 {
        let index = ((self.latencies.len() - 1) as f64 * share) as usize;
        round(self.latencies[index].as_secs_f64() * 1e6)
    }
}

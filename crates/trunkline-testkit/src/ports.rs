//! Ports for programs that are told where to listen.
//!
//! A port that the system chose and that was let go may be given to a connection before the program listens at it.
//! These lie below the ports of connections, and no other test of this machine is given one that is in use here.

use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};

/// A port of this machine that nobody listens on, for as long as this process runs.
///
/// # Panics
/// If all are taken.
pub fn free_port() -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let count = RANGE.end - RANGE.start;
    let first = u16::try_from(std::process::id() % u32::from(count)).unwrap_or(0);
    for step in 0..count {
        let port = RANGE.start + (first + step) % count;
        if let Some(name) = reserve(port) {
            given.push(name);
            return port;
        }
    }
    panic!("All ports from {} to {} are taken.", RANGE.start, RANGE.end);
}

/// Takes the name of a port, which the system frees when the process ends, if the port itself is free, too.
fn reserve(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("trunkline test port {port}")).ok()?;
    let name = UnixListener::bind_addr(&name).ok()?;
    TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(name)
}

/// The names of the ports that this process gave out.
static GIVEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Below the ports that Linux gives to connections (`ip_local_port_range`), and so are those ten thousand higher, where
/// the nodes of a Redis cluster talk to each other.
const RANGE: Range<u16> = 10_000..20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_though_nobody_listens_yet() {
        let ports = [(); 50].map(|()| free_port());
        let mut unique = ports.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ports.len());
        assert!(ports.iter().all(|port| reserve(*port).is_none()), "another process gets others");
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_given() {
        let somebody = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = somebody.local_addr().expect("it is bound").port();
        assert!(reserve(port).is_none());
    }
}

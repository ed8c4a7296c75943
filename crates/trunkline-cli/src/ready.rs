//! Notifies the service manager that we are ready (systemd's `Type=notify`).

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies it, if one waits.
pub(crate) fn tell() {
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&place)
    {
        let _ =
            writeln!(io::stderr(), "The service manager was not told that we are ready: {error}.");
    }
}

fn send(place: &OsStr) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(b"READY=1", &address(place)?)?;
    Ok(())
}

/// A path, or with an `@` an abstract socket.
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    match place.as_bytes().split_first() {
        #[cfg(target_os = "linux")]
        Some((b'@', name)) => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        _ => SocketAddr::from_pathname(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_hears_it_by_path_and_by_name() {
        let name = format!("trunkline-ready-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        for place in [path.clone().into_os_string(), format!("@{name}").into()] {
            let socket = UnixDatagram::bind_addr(&address(&place).unwrap()).unwrap();
            send(&place).unwrap();
            let mut heard = [0; 16];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1");
        }
        std::fs::remove_file(path).unwrap();
        assert!(send(OsStr::new("/nowhere/at-all")).is_err());
    }
}

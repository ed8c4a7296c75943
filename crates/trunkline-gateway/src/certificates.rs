//! TLS certificates that follow their files as they change.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use trunkline_transport::http::Tls;

/// A certificate, its key and an optional client CA: the files, and what was last read from them.
#[derive(Debug)]
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    tls: Tls,
    seen: Vec<Stamp>,
}

/// Identifies the version of a file.
type Stamp = Option<(SystemTime, u64)>;

impl Certificates {
    /// Reads the files.
    pub fn open(certificate: &Path, key: &Path, clients: Option<&Path>) -> io::Result<Self> {
        let seen =
            [Some(certificate), Some(key), clients].into_iter().flatten().map(stamp).collect();
        let read = Read::new(certificate, key, clients)?;
        let tls = Tls::new(&read.certificate, &read.key, read.clients.as_deref())
            .map_err(|error| in_file(certificate, &error))?;
        let clients = clients.map(Path::to_owned);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), clients, tls, seen })
    }

    /// The TLS settings to serve with. They follow the files as long as [`refresh`](Self::refresh) is called.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Reads the files again if they changed, and returns whether they did. Invalid files leave the current
    /// ones in use, and the next call tries again.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let files = [Some(&self.certificate), Some(&self.key), self.clients.as_ref()];
        let seen: Vec<_> = files.into_iter().flatten().map(|it| stamp(it)).collect();
        if seen == self.seen {
            return Ok(false);
        }
        let read = Read::new(&self.certificate, &self.key, self.clients.as_deref())?;
        self.tls
            .reload(&read.certificate, &read.key, read.clients.as_deref())
            .map_err(|error| in_file(&self.certificate, &error))?;
        self.seen = seen;
        Ok(true)
    }

    /// Refreshes them periodically. Reports each error once, until it changes.
    pub async fn watch(mut self, complain: impl Fn(io::Error)) -> Infallible {
        let mut told = String::new();
        loop {
            sleep(EVERY).await;
            match self.refresh() {
                Ok(_) => told.clear(),
                Err(error) if error.to_string() == told => {}
                Err(error) => {
                    told = error.to_string();
                    complain(error);
                }
            }
        }
    }
}

struct Read {
    certificate: Vec<u8>,
    key: Vec<u8>,
    clients: Option<Vec<u8>>,
}

impl Read {
    fn new(certificate: &Path, key: &Path, clients: Option<&Path>) -> io::Result<Self> {
        let (certificate, key) = (read(certificate)?, read(key)?);
        Ok(Self { certificate, key, clients: clients.map(read).transpose()? })
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| {
        let message = format!("Cannot read `{}`: {error}.", path.display());
        io::Error::new(error.kind(), message)
    })
}

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn in_file(path: &Path, error: &io::Error) -> io::Error {
    let message = format!("The certificate `{}` is of no use. {error}", path.display());
    io::Error::new(error.kind(), message)
}

const EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
pub(crate) use tests::self_signed;

#[cfg(test)]
mod tests {
    use super::*;

    include!("../../trunkline-transport/tests/it/pem.rs");

    #[test]
    fn files_are_read_again_when_they_change_and_only_if_they_are_in_order() {
        let name = trunkline_auth::tag::random_name();
        let folder = std::env::temp_dir().join(format!("trunkline-{}", &name[..12]));
        fs::create_dir(&folder).unwrap();
        let (certificate, key) = (folder.join("c.pem"), folder.join("k.pem"));
        let write = |pair: (String, String)| {
            fs::write(&certificate, pair.0).unwrap();
            fs::write(&key, pair.1).unwrap();
        };
        let error = Certificates::open(&certificate, &key, None).unwrap_err().to_string();
        assert!(error.starts_with("Cannot read `") && error.contains("c.pem"), "{error}");
        write(self_signed());
        let mut certificates = Certificates::open(&certificate, &key, None).unwrap();
        assert!(!certificates.refresh().unwrap());
        // Another length, in case the file system's clock is too coarse.
        let (chain, pair) = self_signed();
        write((format!("{chain}\n"), pair));
        assert!(certificates.refresh().unwrap());
        assert!(!certificates.refresh().unwrap());
        fs::write(&key, "half of it").unwrap();
        for _ in 0..2 {
            let error = certificates.refresh().unwrap_err().to_string();
            assert!(error.contains("is of no use. There is no key in"), "{error}");
        }
        write(self_signed());
        assert!(certificates.refresh().unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}

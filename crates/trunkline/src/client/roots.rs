//! The folders that a host exposes to servers, and the notifications when they change: because the
//! host sets them, or because one appears or disappears on disk.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::Root;
use trunkline_wire::text::percent_decode;

use super::Client;

/// The folders that servers may know about. Clones share one list: keep one to change it.
///
/// ```
/// use trunkline::client::{Client, Roots};
/// use trunkline::model::Root;
///
/// let roots = Roots::new([Root::new("file:///projects/ada")]);
/// let client = Client::builder("example", "1.0.0").roots(roots.clone());
/// // …and once it is connected, followed by `client.roots_changed().await` unless it watches:
/// roots.set([Root::new("file:///projects/grace")]);
/// ```
#[derive(Clone, Debug)]
pub struct Roots {
    shared: Arc<Shared>,
    may_change: bool,
}

#[derive(Debug)]
struct Shared {
    folders: Mutex<Folders>,
    /// Counts the changes of the visible list.
    changes: watch::Sender<u64>,
}

/// The folders that were set, and which of them were missing at the last check.
#[derive(Debug, Default)]
struct Folders {
    named: Vec<Root>,
    missing: Vec<String>,
}

impl Folders {
    fn present(&self) -> Vec<Root> {
        let is_present = |root: &&Root| !self.missing.contains(&root.uri);
        self.named.iter().filter(is_present).cloned().collect()
    }

    /// Stores the result of a check. Returns whether the visible list changed.
    fn found_missing(&mut self, missing: Vec<String>) -> bool {
        let before = self.present();
        self.missing = missing;
        self.present() != before
    }
}

impl Roots {
    /// Folders that may change.
    ///
    /// ```
    /// use trunkline::{client::Roots, model::Root};
    ///
    /// assert_eq!(Roots::new([Root::new("file:///projects/ada")]).get().len(), 1);
    /// ```
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Self {
        let folders = Folders { named: roots.into_iter().collect(), missing: Vec::new() };
        let shared = Shared { folders: Mutex::new(folders), changes: watch::Sender::new(0) };
        Self { shared: Arc::new(shared), may_change: true }
    }

    /// The current folders, without those that were missing at the last [check](Self::look).
    ///
    /// ```
    /// use trunkline::{client::Roots, model::Root};
    ///
    /// let roots = Roots::new([Root::new("file:///projects/ada")]);
    /// assert_eq!(roots.get()[0].uri, "file:///projects/ada");
    /// ```
    pub fn get(&self) -> Vec<Root> {
        self.lock().present()
    }

    /// Replaces the folders. A client that [watches](super::Client::watch_roots) them notifies its
    /// server; otherwise call [`Client::roots_changed`](super::Client::roots_changed).
    ///
    /// ```
    /// use trunkline::{client::Roots, model::Root};
    ///
    /// let roots = Roots::new([Root::new("file:///projects/ada")]);
    /// roots.clone().set([Root::new("file:///projects/grace")]);
    /// assert_eq!(roots.get()[0].uri, "file:///projects/grace", "clones are the same folders");
    /// ```
    pub fn set(&self, roots: impl IntoIterator<Item = Root>) {
        let named: Vec<Root> = roots.into_iter().collect();
        let mut folders = self.lock();
        let before = folders.present();
        folders.named = named;
        if folders.present() != before {
            self.shared.changes.send_modify(|count| *count += 1);
        }
    }

    /// Checks which of the folders exist on disk, and hides the others until a later check finds
    /// them. Returns whether the visible list changed. It blocks on the disk.
    ///
    /// ```
    /// use trunkline::{client::Roots, model::Root};
    ///
    /// let roots = Roots::new([Root::new("file:///no/such/folder"), Root::new("file:///")]);
    /// assert!(roots.look());
    /// assert_eq!(roots.get(), [Root::new("file:///")]);
    /// assert!(!roots.look(), "nothing has changed since");
    /// ```
    pub fn look(&self) -> bool {
        let named = self.lock().named.clone();
        // Not under the lock: a disk may be slow.
        let is_missing = |root: &Root| folder(&root.uri).is_some_and(|path| !path.is_dir());
        let missing = named.into_iter().filter(is_missing).map(|root| root.uri).collect();
        let mut folders = self.lock();
        let has_changed = folders.found_missing(missing);
        if has_changed {
            self.shared.changes.send_modify(|count| *count += 1);
        }
        has_changed
    }

    pub(super) fn may_change(&self) -> bool {
        self.may_change
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.shared.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Folders that do not change.
impl From<Vec<Root>> for Roots {
    fn from(roots: Vec<Root>) -> Self {
        Self { may_change: false, ..Self::new(roots) }
    }
}

/// Folders that do not change.
impl<const N: usize> From<[Root; N]> for Roots {
    fn from(roots: [Root; N]) -> Self {
        Vec::from(roots).into()
    }
}

/// A client's watch over its [`Roots`]. Dropping it ends the watch.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::{Client, Server, client::{Roots, RootsWatch}, model::Root};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = Server::builder("files", "1.0.0").build();
/// let roots = Roots::new([Root::new("file:///")]);
/// let client = Client::builder("example", "1.0.0").roots(roots.clone());
/// let client = client.connect_memory(&server).await?;
/// let watch: RootsWatch = client.watch_roots(&roots, Duration::from_secs(2));
/// drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct RootsWatch(Option<JoinHandle<()>>);

impl RootsWatch {
    pub(super) fn start(handle: ConversationHandle, roots: &Roots, every: Duration) -> Self {
        // From now on: the server asks for earlier values anyway.
        let mut changes = roots.shared.changes.subscribe();
        let roots = roots.clone();
        Self(Some(tokio::spawn(async move {
            // The first check is immediate.
            let mut next = Instant::now();
            while !handle.is_closed() {
                match timeout_at(next, changes.changed()).await {
                    Ok(Ok(())) => handle.notify(LIST_CHANGED, Object::default()).await,
                    Ok(Err(_)) => return,
                    Err(_) => {
                        let roots = roots.clone();
                        // A check that fails to run changes nothing.
                        let _ = tokio::task::spawn_blocking(move || roots.look()).await;
                        next = Instant::now() + every.max(SHORTEST);
                    }
                }
            }
        })))
    }

    /// Keeps watching until the connection ends, without this value.
    pub fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for RootsWatch {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl fmt::Debug for RootsWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootsWatch").finish_non_exhaustive()
    }
}

impl Client {
    /// Notifies the server that the roots have changed, if the revision has that notification.
    /// ```
    /// # use trunkline::{Client, Server, client::Roots, model::Root}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("files", "1.0.0").build();
    /// let roots = Roots::new([Root::new("file:///projects/ada")]);
    /// let builder = Client::builder("example", "1.0.0").roots(roots.clone());
    /// let client = builder.connect_memory(&server).await?;
    /// roots.set([Root::new("file:///projects/grace")]);
    /// client.roots_changed().await;
    /// assert!(client.ping().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn roots_changed(&self) {
        let handle = &self.caller.handle;
        handle.notify(LIST_CHANGED, Object::default()).await;
    }

    /// Watches the roots until the returned value is dropped. The server is notified when they are
    /// set, and when one of the folders appears or disappears on disk, which is checked at this
    /// interval. A missing folder is hidden from servers.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use trunkline::{Client, Server, client::Roots, model::Root};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("files", "1.0.0").build();
    /// let roots = Roots::new([Root::new("file:///projects/ada")]);
    /// let builder = Client::builder("example", "1.0.0").roots(roots.clone());
    /// let client = builder.connect_memory(&server).await?;
    /// let _watch = client.watch_roots(&roots, Duration::from_secs(2));
    /// roots.set([Root::new("file:///projects/grace")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use = "dropping it ends the watch"]
    pub fn watch_roots(&self, roots: &Roots, every: Duration) -> RootsWatch {
        RootsWatch::start(self.caller.handle.clone(), roots, every)
    }
}

/// The local folder of a URI, if it names one.
fn folder(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    path.starts_with('/').then(|| percent_decode(path).map(PathBuf::from))?
}

const LIST_CHANGED: Method = Method::RootsListChanged;
/// The shortest interval between checks of the disk.
const SHORTEST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_a_folder_of_this_machine_or_none() {
        for (uri, path) in [("file:///a/b%20c", "/a/b c"), ("file://localhost/a", "/a")] {
            assert_eq!(folder(uri), Some(PathBuf::from(path)), "{uri}");
        }
        for uri in ["file://elsewhere/a", "file:///a%ff", "https://x.example/a"] {
            assert_eq!(folder(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_left_out_until_it_is_back() {
        let [a, b] = ["file:///a", "file:///b"].map(Root::new);
        let mut folders = Folders { named: vec![a.clone(), b.clone()], missing: Vec::new() };
        assert!(!folders.found_missing(Vec::new()));
        assert!(folders.found_missing(vec![a.uri.clone()]));
        assert_eq!(folders.present(), std::slice::from_ref(&b));
        assert!(!folders.found_missing(vec![a.uri.clone()]));
        assert!(folders.found_missing(Vec::new()));
        assert_eq!(folders.present(), [a, b]);
    }

    #[test]
    fn only_what_servers_would_see_is_a_change() {
        let roots = Roots::new([Root::new("file:///a")]);
        let changes = roots.shared.changes.subscribe();
        roots.set([Root::new("file:///a")]);
        assert!(!changes.has_changed().unwrap());
        roots.set([Root::new("file:///b")]);
        assert!(changes.has_changed().unwrap());
    }
}

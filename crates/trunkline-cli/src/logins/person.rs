//! Shows a page to a person and receives its redirect: at a local port, or pasted by the person.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use trunkline::auth::browser::{Browser, Prepared, Visit};
use trunkline::auth::{Loopback, Pending};

use crate::output::{Screen, one_line};

/// Sends a person to a page, by a browser or by showing its address.
pub(crate) struct Person {
    inner: Loopback,
    screen: Screen,
    /// Whether the redirect may be pasted.
    pastes: bool,
    /// The only port to listen at.
    port: Option<u16>,
    doubt: Arc<AtomicBool>,
}

impl Person {
    pub(crate) fn new(screen: &Screen, shows: bool, port: Option<u16>) -> Self {
        let pastes = shows || screen.is_interactive();
        let on = screen.clone();
        // It is shown after the check that it is a page and nothing else.
        let inner = Loopback::new().tell(move |page| show(&on, page, shows, pastes));
        let inner = if shows { inner.without_opening() } else { inner };
        Self { inner, screen: screen.clone(), pastes, port, doubt: Arc::default() }
    }

    /// Whether the page may not know this client, because the registration is from an earlier
    /// login. A waiting person is told what to do then.
    pub(crate) fn doubt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.doubt)
    }
}

/// A browser may not open, or the wrong one may, so the address is always shown.
fn show(screen: &Screen, page: &str, shows: bool, pastes: bool) {
    let first = match shows {
        true => "Open this page in a browser:",
        false => "If no browser opens, open this page in one:",
    };
    let last = match pastes {
        true => {
            "A browser on another machine ends at an address of this one, which it cannot open.\n\
             Paste that address here.\n"
        }
        false => "",
    };
    screen.say(&format!("{first}\n\n  {}\n\n{last}", one_line(page)));
}

impl Browser for Person {
    fn prepare<'a>(&'a self, redirect_uris: &'a [String]) -> Prepared<'a> {
        Box::pin(async move {
            if let Some(port) = self.port
                && !redirect_uris.is_empty()
                && !redirect_uris.iter().any(|it| it.contains(&format!(":{port}/")))
            {
                return Err(format!("None of the registered addresses has the port {port}."));
            }
            let inner = self.inner.prepare(redirect_uris).await?;
            let (screen, doubt) = (self.screen.clone(), self.doubt());
            let page = Page { inner, screen, pastes: self.pastes, doubt };
            Ok(Box::new(page) as Box<dyn Visit>)
        })
    }
}

struct Page {
    inner: Box<dyn Visit>,
    screen: Screen,
    pastes: bool,
    doubt: Arc<AtomicBool>,
}

impl Visit for Page {
    fn redirect_uri(&self) -> &str {
        self.inner.redirect_uri()
    }

    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>> {
        Box::pin(async move {
            let at = self.inner.redirect_uri().to_owned();
            let (screen, is_doubtful) = (&self.screen, self.doubt.load(Ordering::Relaxed));
            tokio::select! {
                heard = self.inner.go(url) => heard,
                query = pasted(&at, screen), if self.pastes => Ok(query),
                never = advised(|it| screen.aside("login", it)), if is_doubtful => match never {},
            }
        })
    }
}

/// Tells a person who waits for long what to do if the page does not know this client: the page
/// cannot tell the program (RFC 6749 §4.1.2.1). Never ends.
async fn advised(tell: impl FnOnce(&str)) -> Infallible {
    sleep(PATIENCE).await;
    tell(UNKNOWN_CLIENT);
    std::future::pending().await
}

/// The query of the address that the user pastes.
async fn pasted(at: &str, screen: &Screen) -> String {
    let (sender, mut lines) = mpsc::channel(1);
    // A blocking read cannot be cancelled, so the thread is left behind.
    thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        match query(at, &line) {
            Some(query) => return query.to_owned(),
            None if line.trim().is_empty() => {}
            None => screen.aside("login", &format!("That address does not begin with `{at}?`.")),
        }
    }
    // Stdin is at its end.
    std::future::pending().await
}

fn query<'a>(at: &str, line: &'a str) -> Option<&'a str> {
    let rest = line.trim().strip_prefix(at)?.strip_prefix('?')?;
    rest.split('#').next()
}

/// How long a person waits before the advice about a page that fails.
const PATIENCE: Duration = Duration::from_secs(10);
const UNKNOWN_CLIENT: &str = "If the page says that it does not know the client, press Ctrl-C and \
    run the same command again: it registers again.";

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn only_the_address_that_was_waited_for_is_taken() {
        let at = "http://127.0.0.1:8765/callback";
        for (line, expected) in [
            ("http://127.0.0.1:8765/callback?code=a&state=b", Some("code=a&state=b")),
            ("  http://127.0.0.1:8765/callback?code=a#_=_ \n", Some("code=a")),
            ("http://127.0.0.1:8765/callback", None),
            ("http://127.0.0.1:8766/callback?code=a", None),
            ("http://127.0.0.1:8765/callbacks?code=a", None),
            ("https://evil.example/?code=a", None),
            ("code=a", None),
        ] {
            assert_eq!(query(at, line), expected, "{line}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_long_is_told_once_what_to_do_at_a_page_that_fails() {
        let told = Mutex::new(Vec::new());
        let mut advised = pin!(advised(|it| told.lock().unwrap().push(it.to_owned())));
        for (time, times) in [(PATIENCE - Duration::from_millis(1), 0), (PATIENCE * 10, 1)] {
            assert!(timeout(time, advised.as_mut()).await.is_err());
            assert_eq!(*told.lock().unwrap(), vec![UNKNOWN_CLIENT; times]);
        }
    }
}

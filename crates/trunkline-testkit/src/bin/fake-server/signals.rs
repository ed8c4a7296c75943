//! Signals into lines of the log, and into what the options say of them.

use std::sync::Arc;
use std::thread;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::Server;

/// Watches from a thread of its own. The signals are caught when this returns.
pub(crate) fn watch(server: &Arc<Server>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime of one thread can be made");
    let guard = runtime.enter();
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let usr1 = server.options.tells_changes.then(|| signal(SignalKind::user_defined1()));
    let mut usr1 = usr1.map(|it| it.expect("SIGUSR1 can be caught"));
    drop(guard);
    let server = Arc::clone(server);
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                let changed = async {
                    match &mut usr1 {
                        Some(usr1) => usr1.recv().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = term.recv() => {
                        server.journal.write("signal", json!({ "signal": "SIGTERM" }));
                        if !server.options.ignores_term {
                            server.journal.exit(143);
                        }
                    }
                    _ = changed => {
                        server.journal.write("signal", json!({ "signal": "SIGUSR1" }));
                        server.tools_changed();
                    }
                }
            }
        })
    });
}

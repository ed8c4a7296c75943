//! A change that one replica tells of → the clients that listen at the others.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use trunkline_proto::Change;
use trunkline_store::{Heard, Listener};

use super::{Inner, Replicas};

/// What goes through the store.
#[derive(Serialize, Deserialize)]
struct Told {
    /// The server that tells it.
    from: String,
    news: News,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum News {
    Tools,
    Prompts,
    Resources,
    Resource(String),
    ElicitationComplete(String),
}

impl News {
    /// None of tasks: whoever waits for one looks into the store.
    fn of(change: &Change) -> Option<Self> {
        match change {
            Change::Tools => Some(Self::Tools),
            Change::Prompts => Some(Self::Prompts),
            Change::Resources => Some(Self::Resources),
            Change::Resource(uri) => Some(Self::Resource(uri.clone())),
            Change::ElicitationComplete(id) => Some(Self::ElicitationComplete(id.clone())),
            _ => None,
        }
    }
}

impl From<News> for Change {
    fn from(news: News) -> Self {
        match news {
            News::Tools => Self::Tools,
            News::Prompts => Self::Prompts,
            News::Resources => Self::Resources,
            News::Resource(uri) => Self::Resource(uri),
            News::ElicitationComplete(id) => Self::ElicitationComplete(id),
        }
    }
}

impl Replicas {
    /// Tells the other replicas. Nobody waits for it: who misses it learns that it missed something.
    pub(super) fn tell(&self, change: &Change) {
        let (Some(news), Ok(runtime)) = (News::of(change), Handle::try_current()) else { return };
        let told = Told { from: self.teller.clone(), news };
        let told = serde_json::to_vec(&told).expect("our own types can be written");
        let store = Arc::clone(&self.store);
        runtime.spawn(async move {
            if let Err(error) = store.publish(CHANNEL, &told).await {
                tracing::debug!(%error, "other replicas could not be told of a change");
            }
        });
    }

    /// Hears what the others tell; `None` while the store is away.
    pub(super) async fn listen(&self) -> Option<Listener> {
        self.store.listen(CHANNEL).await.ok()
    }

    /// Tells the clients of a server what other replicas tell, for as long as it is there.
    pub(super) async fn pass_on(&self, mut listener: Option<Listener>, to: Weak<Inner>) {
        loop {
            let heard = match &mut listener {
                Some(listener) => listener.next().await,
                None => None,
            };
            let Some(server) = to.upgrade() else { return };
            match heard {
                Some(heard) => self.changes(heard, &server).iter().for_each(|it| server.tell(it)),
                None => {
                    drop(server);
                    tokio::time::sleep(AGAIN).await;
                    listener = self.listen().await;
                }
            }
        }
    }

    fn changes(&self, heard: Heard, server: &Inner) -> Vec<Change> {
        let told = match &heard {
            Heard::Message(told) => serde_json::from_slice::<Told>(told).ok(),
            Heard::Lost(_) => None,
        };
        match told {
            Some(told) if told.from == self.teller => Vec::new(),
            Some(told) => vec![told.news.into()],
            // Any list may have changed: messages were lost, or a newer version tells what this one does not know.
            None => {
                let has = &server.core.capabilities;
                let lists = [
                    (has.tools.is_some(), Change::Tools),
                    (has.prompts.is_some(), Change::Prompts),
                    (has.resources.is_some(), Change::Resources),
                ];
                lists.into_iter().filter(|(is_there, _)| *is_there).map(|it| it.1).collect()
            }
        }
    }
}

const CHANNEL: &str = "changes";
/// Before the store is asked again.
const AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use trunkline_store::Memory;

    use super::*;
    use crate::{Server, tool};

    #[test]
    fn what_was_missed_may_be_any_list_of_the_server() {
        let replicas = || Replicas::new(Arc::new(Memory::default()), [7; 32], "127.0.0.1:0");
        let server = Server::builder("a", "1").tool(tool("b", async || "c")).replicas(replicas());
        let server = server.build();
        let own = server.inner().replicas.as_ref().expect("it has them");
        assert_eq!(own.changes(Heard::Lost(1), server.inner()), [Change::Tools]);
        let message = |from: &str, news| {
            let told = Told { from: from.to_owned(), news };
            Heard::Message(serde_json::to_vec(&told).expect("it can be written").into())
        };
        let theirs = message("another", News::Resource("test://a".to_owned()));
        let change = Change::Resource("test://a".to_owned());
        assert_eq!(own.changes(theirs, server.inner()), [change]);
        assert_eq!(own.changes(message(&own.teller, News::Tools), server.inner()), []);
        assert_eq!(
            own.changes(Heard::Message(b"?".to_vec().into()), server.inner()),
            [Change::Tools]
        );
    }
}

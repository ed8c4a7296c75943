//! Promises about channels.

use super::{Kept, Subject, Wrong, holds, same};
use crate::{Heard, Listener, StoreError};

pub(super) async fn a_listener_hears_its_channel_from_now_on(on: Subject) -> Kept {
    on.store.publish("news", b"before").await?;
    let mut listener = on.store.listen("news").await?;
    on.store.publish("other", b"elsewhere").await?;
    on.store.publish("news/1", b"below").await?;
    on.store.publish("News", b"capital").await?;
    on.store.publish("news", b"").await?;
    on.store.publish("news", b"after").await?;
    same("the first", next(&mut listener).await?, b"".to_vec())?;
    same("the second", next(&mut listener).await?, b"after".to_vec())
}

pub(super) async fn every_listener_hears_everything(on: Subject) -> Kept {
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(on.store.listen("news").await?);
    }
    let messages = on.bounds.queue.min(10) as u8;
    for message in 0..messages {
        on.store.publish("news", &[message]).await?;
    }
    for listener in &mut listeners {
        for message in 0..messages {
            same("a message", next(listener).await?, vec![message])?;
        }
    }
    Ok(())
}

pub(super) async fn each_publisher_is_heard_in_order(on: Subject) -> Kept {
    let mut listener = on.store.listen("news").await?;
    let each = (on.bounds.queue / 4).clamp(1, 50) as u8;
    let publish = on.at_once(4, move |store, publisher| async move {
        for message in 0..each {
            store.publish("news", &[publisher as u8, message]).await?;
        }
        Ok(())
    });
    publish.await?;
    let mut expected = [0; 4];
    for _ in 0..4 * usize::from(each) {
        let heard = next(&mut listener).await?;
        let [publisher, message] = heard[..] else {
            return Err(Wrong(format!("Heard {heard:?}, which nobody said.")));
        };
        let expected = &mut expected[usize::from(publisher)];
        same(&format!("of publisher {publisher}"), message, *expected)?;
        *expected += 1;
    }
    Ok(())
}

pub(super) async fn a_slow_listener_learns_how_many_it_lost(on: Subject) -> Kept {
    let mut listener = on.store.listen("news").await?;
    let many = on.bounds.queue as u64 * 2 + 3;
    for message in 0..many {
        on.store.publish("news", &message.to_le_bytes()).await?;
    }
    // A remote store may deliver while we read, so the number of losses is open; but each message must
    // be received or counted, in its place.
    let mut next = 0;
    while next < many {
        match listener.next().await {
            Some(Heard::Lost(lost)) => {
                holds("some are lost", lost > 0)?;
                next += lost;
            }
            Some(Heard::Message(bytes)) => {
                same("a message", bytes.to_vec(), next.to_le_bytes().to_vec())?;
                next += 1;
            }
            None => return Err(Wrong("The channel ended.".to_owned())),
        }
    }
    same("all of them", next, many)?;
    on.store.publish("news", b"on").await?;
    same("afterwards", self::next(&mut listener).await?, b"on".to_vec())
}

pub(super) async fn a_message_beyond_the_bound_is_refused(on: Subject) -> Kept {
    let most = on.bounds.message;
    let mut listener = on.store.listen("news").await?;
    on.store.publish("news", &vec![7; most]).await?;
    let refused = on.store.publish("news", &vec![7; most + 1]).await;
    same("publish", refused, Err(StoreError::TooLarge { size: most + 1, most }))?;
    on.store.publish("news", b"on").await?;
    same("the largest", next(&mut listener).await?.len(), most)?;
    same("the one after", next(&mut listener).await?, b"on".to_vec())
}

pub(super) async fn a_listener_that_left_disturbs_nobody(on: Subject) -> Kept {
    let mut stays = on.store.listen("news").await?;
    for round in 0..5_u8 {
        let leaves = on.store.listen("news").await?;
        drop(leaves);
        on.store.publish("news", &[round]).await?;
        same("a message", next(&mut stays).await?, vec![round])?;
    }
    drop(stays);
    on.store.publish("news", b"nobody").await?;
    let mut later = on.store.listen("news").await?;
    on.store.publish("news", b"later").await?;
    same("a later listener", next(&mut later).await?, b"later".to_vec())
}

/// The next message; a loss is an error.
async fn next(listener: &mut Listener) -> Result<Vec<u8>, Wrong> {
    match listener.next().await {
        Some(Heard::Message(bytes)) => Ok(bytes.to_vec()),
        other => Err(Wrong(format!("Expected a message, but heard {other:?}."))),
    }
}

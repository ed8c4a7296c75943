//! What the recorder needs for conversations of one request, used again for the next ones.

use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_proto::Attached;

use super::Traffic;
use super::link::Link;

/// The links of the last conversations of one request. One that nobody else has any more is used again.
#[derive(Default)]
pub(crate) struct OneRequestLinks(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    links: Vec<Arc<Link>>,
    /// Where to look for the next one.
    next: usize,
}

impl OneRequestLinks {
    /// A link for a conversation of one request of this client.
    pub(crate) fn link(self: &Arc<Self>, traffic: &Arc<Traffic>, attached: &Attached) -> Arc<Link> {
        let mut ring = self.0.lock();
        let Ring { links, next } = &mut *ring;
        let at = *next % LINKS;
        *next = at + 1;
        let (link, replaced) = match links.get_mut(at) {
            Some(link) => match Arc::get_mut(link) {
                Some(unused) => {
                    unused.is_of_another(attached);
                    (Arc::clone(link), None)
                }
                None => {
                    let new = Link::of_one_request(traffic, attached, self);
                    (Arc::clone(&new), Some(std::mem::replace(link, new)))
                }
            },
            None => {
                let new = Link::of_one_request(traffic, attached, self);
                links.push(Arc::clone(&new));
                (new, None)
            }
        };
        drop(ring);
        // Not under the lock: the last one to let go of a link takes that of the calls.
        drop(replaced);
        link.forget_open();
        link
    }

    /// Lets go of those that nobody uses, such as when no more calls are recorded.
    pub(crate) fn clear(&self) {
        let mut ring = self.0.lock();
        let Ring { links, .. } = std::mem::take(&mut *ring);
        drop(ring);
        drop(links);
    }

    /// This link is not used again: its entry ends with its conversation.
    #[cold]
    pub(super) fn remove(&self, link: &Link) {
        let mut ring = self.0.lock();
        let at = ring.links.iter().position(|it| std::ptr::eq(&raw const **it, link));
        let removed = at.map(|at| ring.links.swap_remove(at));
        drop(ring);
        // Its conversation has it still.
        drop(removed);
    }
}

/// How many are kept: more than there are at once, most of the time.
const LINKS: usize = 64;

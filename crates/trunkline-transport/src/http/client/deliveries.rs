//! Deliveries in flight → the ends of those that are over, in the task of their conversation.
//!
//! Each has a waker of its own: a wake-up polls one of them, however many there are.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use trunkline_proto::CallError;

use super::InFlight;
use super::delivery::End;

/// What delivers a message. Dropping it stops the delivery.
pub(super) type Delivering = Pin<Box<dyn Future<Output = End> + Send>>;

/// The deliveries of one conversation. As many as there were at once have a place, which is used again.
#[derive(Default)]
pub(super) struct Deliveries {
    places: Vec<Place>,
    free: Vec<usize>,
    /// The places to poll in this turn.
    due: VecDeque<usize>,
    woken: Arc<Woken>,
    /// Whom `woken` wakes.
    told: Option<Waker>,
    /// A free place that was woken.
    stray: Option<usize>,
}

struct Place {
    bell: Arc<Bell>,
    waker: Waker,
    delivery: Option<(InFlight, Delivering)>,
}

/// What a delivery wakes: the list, and with it the task of the conversation.
struct Bell {
    place: usize,
    /// Whether the place is in the list.
    is_listed: AtomicBool,
    woken: Arc<Woken>,
}

/// The places whose deliveries were woken since the last turn.
#[derive(Default)]
struct Woken {
    list: Mutex<List>,
    /// Whether the list has any. Changes under its lock.
    has_any: AtomicBool,
}

#[derive(Default)]
struct List {
    places: Vec<usize>,
    listener: Option<Waker>,
}

impl Deliveries {
    /// Adds a delivery, which is due at once.
    pub(super) fn add(&mut self, in_flight: InFlight, delivering: Delivering) {
        let place = self.free.pop().unwrap_or_else(|| {
            let place = self.places.len();
            let woken = Arc::clone(&self.woken);
            let bell = Arc::new(Bell { place, is_listed: AtomicBool::new(false), woken });
            let waker = Waker::from(Arc::clone(&bell));
            self.places.push(Place { bell, waker, delivery: None });
            place
        });
        self.places[place].delivery = Some((in_flight, delivering));
        self.due.push_back(place);
    }

    /// Begins a turn: all that were woken are due. From now on a wake-up wakes this task.
    pub(super) fn begin_turn(&mut self, cx: &mut Context<'_>) {
        let knows = self.told.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if knows && !self.woken.has_any.load(Ordering::Acquire) {
            return;
        }
        let mut list = self.woken.lock();
        self.due.extend(list.places.drain(..));
        self.woken.has_any.store(false, Ordering::Release);
        if !knows {
            list.listener = Some(cx.waker().clone());
            self.told = Some(cx.waker().clone());
        }
    }

    /// Whether any is due in this turn.
    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Polls those that are due up to one that has ended: its key, with which it is taken out. One that is woken
    /// meanwhile is due in the next turn.
    pub(super) fn next_end(&mut self) -> Option<(u64, End)> {
        while let Some(at) = self.due.pop_front() {
            let Place { bell, waker, delivery } = &mut self.places[at];
            // Before it is polled: what wakes it from now on counts.
            bell.is_listed.store(false, Ordering::Release);
            let Some((in_flight, delivering)) = delivery else {
                self.stray = Some(at);
                continue;
            };
            let mut cx = Context::from_waker(waker);
            // Credentials are code of others. A panic there costs this message its answer, and nobody else.
            let polled = catch_unwind(AssertUnwindSafe(|| delivering.as_mut().poll(&mut cx)));
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(end)) => return Some((in_flight.key, end)),
                Err(_) => {
                    let why = "it could not be delivered.".to_owned();
                    return Some((in_flight.key, End::Failed(CallError::Lost(why))));
                }
            }
        }
        None
    }

    /// Whom a connection woke that a delivery has left: its server has closed it, most likely.
    pub(super) fn take_stray(&mut self) -> Option<&Waker> {
        let place = self.stray.take()?;
        Some(&self.places[place].waker)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.places.iter().filter_map(|it| it.delivery.as_ref()).map(|(in_flight, _)| in_flight)
    }

    /// The one with this key.
    pub(super) fn get(&self, key: u64) -> Option<&InFlight> {
        self.iter().find(|it| it.key == key)
    }

    /// Takes out the first that is meant, which stops it.
    pub(super) fn remove(&mut self, is_meant: impl Fn(&InFlight) -> bool) -> Option<InFlight> {
        let is_it = |it: &Place| it.delivery.as_ref().is_some_and(|(it, _)| is_meant(it));
        let at = self.places.iter().position(is_it)?;
        let (in_flight, _) = self.places[at].delivery.take()?;
        self.free.push(at);
        Some(in_flight)
    }

    /// Stops all that are not to be kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&InFlight) -> bool) {
        while self.remove(|it| !is_kept(it)).is_some() {}
    }

    pub(super) fn clear(&mut self) {
        self.retain(|_| false);
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_listed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut list = self.woken.lock();
        list.places.push(self.place);
        self.woken.has_any.store(true, Ordering::Release);
        // The first of a list wakes for all of it.
        if let Some(listener) = list.listener.as_ref().filter(|_| list.places.len() == 1) {
            listener.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::super::route::Route;
    use super::super::target::Address;
    use super::*;
    use crate::clock::now;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A delivery that ends when it is let go.
    #[derive(Clone, Default)]
    struct Held(Arc<Mutex<(usize, bool, Option<Waker>)>>);

    impl Held {
        fn delivering(&self) -> Delivering {
            let held = self.clone();
            Box::pin(poll_fn(move |cx| {
                let mut it = held.0.lock().expect("nobody panics");
                (it.0, it.2) = (it.0 + 1, Some(cx.waker().clone()));
                if it.1 { Poll::Ready(End::Accepted) } else { Poll::Pending }
            }))
        }

        fn polls(&self) -> usize {
            self.0.lock().expect("nobody panics").0
        }

        fn wake(&self, ends: bool) {
            let mut it = self.0.lock().expect("nobody panics");
            it.1 = ends;
            it.2.clone().expect("it was polled").wake();
        }
    }

    fn in_flight(key: u64) -> InFlight {
        let address = Address::parse("http://a/mcp").expect("it is one");
        let route = Arc::new(Route::new(address, http::HeaderMap::new(), None));
        InFlight { key, id: None, method: "".into(), since: now(), route }
    }

    /// The keys of those that ended in this turn.
    fn turn(deliveries: &mut Deliveries, task: &Arc<Count>) -> Vec<u64> {
        let waker = Waker::from(Arc::clone(task));
        deliveries.begin_turn(&mut Context::from_waker(&waker));
        let mut ended = Vec::new();
        while let Some((key, _)) = deliveries.next_end() {
            deliveries.remove(|it| it.key == key).expect("it is there");
            ended.push(key);
        }
        ended
    }

    #[test]
    fn a_wake_up_polls_one_delivery_and_a_place_is_used_again() {
        let (mut deliveries, task) = (Deliveries::default(), Arc::new(Count::default()));
        let woken = || task.0.load(Ordering::Relaxed);
        let held = [Held::default(), Held::default()];
        held.iter().zip(1..).for_each(|(it, key)| deliveries.add(in_flight(key), it.delivering()));
        assert!(deliveries.is_due() && turn(&mut deliveries, &task).is_empty());
        assert_eq!(held.each_ref().map(Held::polls), [1, 1]);
        // Two wake-ups of two deliveries wake the task once.
        held[1].wake(false);
        held[1].wake(true);
        held[0].wake(false);
        assert_eq!(woken(), 1);
        assert_eq!(turn(&mut deliveries, &task), [2]);
        assert_eq!(held.each_ref().map(Held::polls), [2, 2]);
        assert!(turn(&mut deliveries, &task).is_empty() && !deliveries.is_due());
        assert_eq!(held.each_ref().map(Held::polls), [2, 2]);

        let third = Held::default();
        deliveries.add(in_flight(3), third.delivering());
        assert_eq!((deliveries.len(), deliveries.places.len()), (2, 2));
        assert!(turn(&mut deliveries, &task).is_empty());
        // The one that was there before wakes its successor, which does no harm.
        held[1].wake(true);
        assert!(turn(&mut deliveries, &task).is_empty());
        assert_eq!((third.polls(), held[1].polls(), woken()), (2, 2, 2));
        deliveries.clear();
        assert!(deliveries.is_empty() && Arc::strong_count(&third.0) == 1);
    }

    #[test]
    fn one_that_panics_ends_and_the_others_go_on() {
        let (mut deliveries, task) = (Deliveries::default(), Arc::new(Count::default()));
        let held = Held::default();
        deliveries.add(in_flight(1), Box::pin(async { panic!("a test wants this") }));
        deliveries.add(in_flight(2), held.delivering());
        assert_eq!(turn(&mut deliveries, &task), [1]);
        held.wake(true);
        assert_eq!(turn(&mut deliveries, &task), [2]);
        assert!(deliveries.is_empty());
    }
}

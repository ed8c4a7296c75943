//! Calls that are cancelled in the middle of a login or a renewal.

use super::*;
use crate::client::tests::refresh::{gives, renews};

/// A world where what is let go goes on when it is driven.
#[derive(Clone)]
struct Street {
    world: World,
    tasks: Arc<Mutex<Vec<Pending<'static, ()>>>>,
}

impl Street {
    fn new(world: &World) -> Self {
        Self { world: world.clone(), tasks: Arc::default() }
    }

    fn process(&self) -> OAuth {
        self.world.process().fetch(Arc::new(self.clone()))
    }

    /// Everything goes on a step.
    fn step(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.retain_mut(|it| poll(it).is_pending());
        self.tasks.lock().unwrap().extend(tasks);
    }

    fn is_quiet(&self) -> bool {
        self.tasks.lock().unwrap().is_empty()
    }

    /// Runs one of ours while everything else goes on.
    fn run<T>(&self, mut future: Pending<'_, T>) -> T {
        loop {
            if let Poll::Ready(it) = poll(&mut future) {
                return it;
            }
            self.step();
        }
    }
}

fn poll<T>(future: &mut Pending<'_, T>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

impl Fetch for Street {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        self.world.fetch(ask)
    }

    fn now(&self) -> SystemTime {
        self.world.now()
    }

    fn detach(&self, work: Pending<'static, ()>) -> Pending<'static, ()> {
        let done = Arc::new(Mutex::new(false));
        let is_done = Arc::clone(&done);
        self.tasks.lock().unwrap().push(Box::pin(async move {
            work.await;
            *done.lock().unwrap() = true;
        }));
        Box::pin(async move {
            while !*is_done.lock().unwrap() {
                turn().await;
            }
        })
    }
}

const TO: Target<'static> = Target { method: "POST", url: SERVER };

#[test]
fn a_renewal_outlives_the_call_it_was_begun_for() {
    let world = check(|it| it, &first_login());
    world.0.lock().unwrap().now += Duration::from_secs(3600);
    world.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    let street = Street::new(&world);
    let oauth = street.process();
    let mut cancelled = oauth.headers(TO);
    assert!(poll(&mut cancelled).is_pending());
    street.step();
    // The refresh token is on its way, and with this authorization server it is good for one use.
    let mut settled = oauth.settled();
    drop(cancelled);
    assert_eq!(world.kept("token")["refresh"], "r-1");
    assert!(poll(&mut settled).is_pending(), "it is not kept yet");
    let headers = street.run(oauth.headers(TO));
    assert_eq!(headers, Ok(vec![("authorization", "Bearer t-2".to_owned())]));
    assert_eq!(world.kept("token")["refresh"], "r-2");
    assert!(poll(&mut settled).is_ready());
    assert_eq!(world.take(), None);
    assert!(street.is_quiet() && world.0.lock().unwrap().locked.is_empty());
}

/// The script of a login, from its discovery to its tokens.
fn login() -> String {
    let script = first_login();
    let (_, login) = script.split_once("< 401 Bearer\n").unwrap();
    login.split_once("> MCP").unwrap().0.to_owned()
}

const REFUSAL: Refused<'static> =
    Refused { status: 401, challenges: &[], sent: &Vec::new(), times: 1 };

/// Goes on until the person is shown the page, or has come back from it.
fn until_the_person_is_asked(street: &Street, lines_left: usize) {
    for _ in 0..100 {
        if street.world.0.lock().unwrap().script.len() <= lines_left {
            return;
        }
        street.step();
    }
    panic!("nobody was asked: {:?}", street.world.take());
}

fn before_a_login() -> (World, Street, OAuth) {
    let world = World::new(&login());
    let street = Street::new(&world);
    let oauth = street.process();
    (world, street, oauth)
}

/// A call that was refused and waits for a person.
fn refused(oauth: &OAuth) -> Pending<'_, Result<(), Denied>> {
    let mut refused = oauth.refused(TO, REFUSAL, Some(&|_| ()));
    assert!(poll(&mut refused).is_pending());
    refused
}

#[test]
fn a_login_that_others_wait_for_outlives_the_call_it_was_begun_for() {
    let (world, street, oauth) = before_a_login();
    let [first, second] = [(); 2].map(|()| refused(&oauth));
    // Four lines are left: the page and the exchange.
    until_the_person_is_asked(&street, 4);
    drop(first);
    assert_eq!(street.run(second), Ok(()));
    assert_eq!(world.take(), None);
    assert_eq!(world.kept("token")["access"], "t-1");
}

#[test]
fn a_code_that_came_is_exchanged_though_nobody_waits_any_more() {
    let (world, street, oauth) = before_a_login();
    let cancelled = refused(&oauth);
    // The person has come back.
    until_the_person_is_asked(&street, 2);
    drop(cancelled);
    while !street.is_quiet() {
        street.step();
    }
    assert_eq!(world.take(), None);
    let headers = street.run(oauth.headers(TO));
    assert_eq!(headers, Ok(vec![("authorization", "Bearer t-1".to_owned())]));
}

#[test]
fn a_page_that_nobody_waits_for_any_more_keeps_nobody_out() {
    let (world, street, oauth) = before_a_login();
    let [first, second] = [(); 2].map(|()| refused(&oauth));
    until_the_person_is_asked(&street, 4);
    drop((first, second));
    while !street.is_quiet() {
        street.step();
    }
    assert!(world.0.lock().unwrap().locked.is_empty());
    assert_eq!(world.0.lock().unwrap().script.len(), 4, "no page is shown for nobody");
    // The registration is known by now.
    let again = World::new(&[&resource(""), &*issuer(""), VISIT, EXCHANGE].concat());
    world.0.lock().unwrap().script.clone_from(&again.0.lock().unwrap().script);
    assert_eq!(street.run(oauth.refused(TO, REFUSAL, Some(&|_| ()))), Ok(()));
    assert_eq!(world.take(), None);
}

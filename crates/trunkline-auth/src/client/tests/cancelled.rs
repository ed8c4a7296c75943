//! Calls that are cancelled in the middle of a login or a refresh.

use super::*;
use crate::client::tests::refresh::{gives, renews};

/// A scripted network where detached work continues when it is driven.
#[derive(Clone)]
struct DetachedWork {
    transcript: Transcript,
    tasks: Arc<Mutex<Vec<Pending<'static, ()>>>>,
}

impl DetachedWork {
    fn new(transcript: &Transcript) -> Self {
        Self { transcript: transcript.clone(), tasks: Arc::default() }
    }

    fn process(&self) -> OAuth {
        self.transcript.process().fetch(Arc::new(self.clone()))
    }

    /// Advances everything by a step.
    fn step(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.retain_mut(|it| poll(it).is_pending());
        self.tasks.lock().unwrap().extend(tasks);
    }

    fn is_quiet(&self) -> bool {
        self.tasks.lock().unwrap().is_empty()
    }

    /// Runs a future while everything else advances.
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

impl Fetch for DetachedWork {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        self.transcript.fetch(ask)
    }

    fn now(&self) -> SystemTime {
        self.transcript.now()
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
    let transcript = check(&[&first_login()]);
    transcript.0.lock().unwrap().now += Duration::from_secs(3600);
    transcript.more(&renews("r-1", &gives("t-2", r#","refresh_token":"r-2""#)));
    let detached = DetachedWork::new(&transcript);
    let oauth = detached.process();
    let mut cancelled = oauth.headers(TO);
    assert!(poll(&mut cancelled).is_pending());
    detached.step();
    // The refresh token is in flight, and with this authorization server it is single-use.
    let mut settled = oauth.settled();
    drop(cancelled);
    assert_eq!(transcript.kept("token")["refresh"], "r-1");
    assert!(poll(&mut settled).is_pending(), "it is not kept yet");
    let headers = detached.run(oauth.headers(TO));
    assert_eq!(headers, Ok(vec![("authorization", "Bearer t-2".to_owned())]));
    assert_eq!(transcript.kept("token")["refresh"], "r-2");
    assert!(poll(&mut settled).is_ready());
    assert_eq!(transcript.take(), None);
    assert!(detached.is_quiet() && transcript.0.lock().unwrap().locked.is_empty());
}

/// The script of a login, from its discovery to its tokens.
fn login() -> String {
    let script = first_login();
    let (_, login) = script.split_once("< 401 Bearer\n").unwrap();
    login.split_once("> MCP").unwrap().0.to_owned()
}

const REFUSAL: Refused<'static> =
    Refused { status: 401, challenges: &[], sent: &Vec::new(), times: 1 };

/// Continues until the page is shown, or has redirected.
fn until_the_person_is_asked(detached: &DetachedWork, lines_left: usize) {
    for _ in 0..100 {
        if detached.transcript.0.lock().unwrap().script.len() <= lines_left {
            return;
        }
        detached.step();
    }
    panic!("nobody was asked: {:?}", detached.transcript.take());
}

fn before_a_login() -> (Transcript, DetachedWork, OAuth) {
    let transcript = Transcript::new(&login());
    let detached = DetachedWork::new(&transcript);
    let oauth = detached.process();
    (transcript, detached, oauth)
}

/// A call that was refused and waits for a person.
fn refused(oauth: &OAuth) -> Pending<'_, Result<(), Denied>> {
    let mut refused = oauth.refused(TO, REFUSAL, Some(&|_| ()));
    assert!(poll(&mut refused).is_pending());
    refused
}

#[test]
fn a_login_that_others_wait_for_outlives_the_call_it_was_begun_for() {
    let (transcript, detached, oauth) = before_a_login();
    let [first, second] = [(); 2].map(|()| refused(&oauth));
    // Four lines are left: the page and the exchange.
    until_the_person_is_asked(&detached, 4);
    drop(first);
    assert_eq!(detached.run(second), Ok(()));
    assert_eq!(transcript.take(), None);
    assert_eq!(transcript.kept("token")["access"], "t-1");
}

#[test]
fn a_code_that_came_is_exchanged_though_nobody_waits_any_more() {
    let (transcript, detached, oauth) = before_a_login();
    let cancelled = refused(&oauth);
    // The page has redirected.
    until_the_person_is_asked(&detached, 2);
    drop(cancelled);
    while !detached.is_quiet() {
        detached.step();
    }
    assert_eq!(transcript.take(), None);
    let headers = detached.run(oauth.headers(TO));
    assert_eq!(headers, Ok(vec![("authorization", "Bearer t-1".to_owned())]));
}

#[test]
fn a_page_that_nobody_waits_for_any_more_keeps_nobody_out() {
    let (transcript, detached, oauth) = before_a_login();
    let [first, second] = [(); 2].map(|()| refused(&oauth));
    until_the_person_is_asked(&detached, 4);
    drop((first, second));
    while !detached.is_quiet() {
        detached.step();
    }
    assert!(transcript.0.lock().unwrap().locked.is_empty());
    assert_eq!(transcript.0.lock().unwrap().script.len(), 4, "no page is shown for nobody");
    // The registration is known by now.
    let again = Transcript::new(&[&resource(""), &*issuer(""), VISIT, EXCHANGE].concat());
    transcript.0.lock().unwrap().script.clone_from(&again.0.lock().unwrap().script);
    assert_eq!(detached.run(oauth.refused(TO, REFUSAL, Some(&|_| ()))), Ok(()));
    assert_eq!(transcript.take(), None);
}

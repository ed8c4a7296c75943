//! Questions between replicas ⇄ sealed texts, and the way they go.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline_auth::seal::Sealer;
use trunkline_transport::http::forward::Forward;
use trunkline_transport::http::replicas::{Lookup, Peer};

use crate::clock::{LONG, wall};
use crate::state::message::{Ask, Name, Question, Reply};

/// Carries a sealed question to a replica's internal listener and the sealed answer back.
pub trait Pinger: Send + Sync + 'static {
    /// The answer; none if there is none in time.
    fn ping<'a>(
        &'a self,
        peer: &'a Peer,
        question: Vec<u8>,
        within: Duration,
    ) -> Lookup<'a, Option<Vec<u8>>>;
}

impl Pinger for Forward {
    fn ping<'a>(
        &'a self,
        peer: &'a Peer,
        question: Vec<u8>,
        within: Duration,
    ) -> Lookup<'a, Option<Vec<u8>>> {
        Box::pin(Forward::ping(self, peer, question, within))
    }
}

/// Seals a question. The answer must name it.
pub(crate) fn seal_question(sealer: &Sealer, question: &Question) -> (Vec<u8>, String) {
    let nonce = sealer.random_name();
    let (ask, about) = match &question.ask {
        Ask::Presence => ("presence", None),
        Ask::Vouch => ("vouch", None),
        Ask::Refuse(about) => ("refuse", Some(about.to_string())),
    };
    let (from, ask) = (question.from.to_string(), ask.to_owned());
    let text = QuestionText { nonce: nonce.clone(), from, ask, about };
    (seal(sealer, &text, QUESTION), nonce)
}

/// Opens a question, with the nonce that the answer names.
pub(crate) fn open_question(sealer: &Sealer, sealed: &[u8]) -> Option<(Question, String)> {
    let it: QuestionText = open(sealer, sealed, QUESTION)?;
    let ask = match (&*it.ask, it.about) {
        ("presence", _) => Ask::Presence,
        ("vouch", _) => Ask::Vouch,
        ("refuse", Some(about)) => Ask::Refuse(about.into()),
        _ => return None,
    };
    Some((Question { from: it.from.into(), ask }, it.nonce))
}

pub(crate) fn seal_reply(sealer: &Sealer, reply: &Reply, nonce: String) -> Vec<u8> {
    seal(sealer, &ReplyText { nonce, from: reply.from.to_string(), yes: reply.yes }, REPLY)
}

/// Opens the reply to the question with this nonce.
pub(crate) fn open_reply(sealer: &Sealer, sealed: &[u8], nonce: &str) -> Option<Reply> {
    let it: ReplyText = open(sealer, sealed, REPLY)?;
    (it.nonce == nonce).then(|| Reply { from: Name::from(it.from), yes: it.yes })
}

#[derive(Serialize, Deserialize)]
struct QuestionText {
    nonce: String,
    from: String,
    ask: String,
    about: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ReplyText {
    nonce: String,
    from: String,
    yes: bool,
}

fn seal(sealer: &Sealer, value: &impl Serialize, context: &[u8]) -> Vec<u8> {
    let plain = serde_json::to_vec(value).unwrap_or_default();
    sealer.seal(&plain, context, wall() + LONG).into_bytes()
}

fn open<T: for<'a> Deserialize<'a>>(sealer: &Sealer, sealed: &[u8], context: &[u8]) -> Option<T> {
    let plain = sealer.open(std::str::from_utf8(sealed).ok()?, context, wall()).ok()?;
    serde_json::from_slice(&plain).ok()
}

const QUESTION: &[u8] = b"trunkline replica question";
const REPLY: &[u8] = b"trunkline replica reply";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_good_for_its_question_alone() {
        let sealer = Sealer::random();
        for ask in [Ask::Presence, Ask::Vouch, Ask::Refuse("c".into())] {
            let question = Question { from: "a".into(), ask };
            let (sealed, nonce) = seal_question(&sealer, &question);
            let (opened, named) = open_question(&sealer, &sealed).unwrap();
            assert_eq!(opened, question);
            let reply = Reply { from: "b".into(), yes: true };
            let sealed_reply = seal_reply(&sealer, &reply, named);
            assert_eq!(open_reply(&sealer, &sealed_reply, &nonce), Some(reply));
            assert_eq!(open_reply(&sealer, &sealed_reply, "another"), None);
            assert_eq!(open_reply(&sealer, &sealed, &nonce), None);
            assert!(open_question(&Sealer::random(), &sealed).is_none());
        }
    }
}

//! What lies in the store ⇄ bytes: JSON, so that an operator can read it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use trunkline_transport::http::replicas::{KeptEvent, SessionRecord};

use crate::state::message::{Member, Name, Owner, Ownership, Record, Roster};

/// The record of a session. What is not understood belongs to a later protocol.
pub(crate) fn record(bytes: &[u8]) -> Record {
    let read = serde_json::from_slice::<RecordText>(bytes).ok();
    let Some(it) = read else {
        let ownership = Ownership::Released;
        return Record { protocol: u32::MAX, ownership, epoch: 0, body: Name::from("") };
    };
    let ownership = match (it.closed, it.owner, it.url) {
        (true, ..) => Ownership::Closed,
        (false, Some(id), Some(url)) => Ownership::Owned(Owner { id: id.into(), url: url.into() }),
        _ => Ownership::Released,
    };
    let body = it.session.map_or_else(|| Name::from(""), |it| it.get().into());
    Record { protocol: it.protocol, ownership, epoch: it.epoch, body }
}

pub(crate) fn record_bytes(record: &Record) -> Vec<u8> {
    let owner = match &record.ownership {
        Ownership::Owned(owner) => Some(owner),
        _ => None,
    };
    let text = RecordText {
        protocol: record.protocol,
        closed: record.ownership == Ownership::Closed,
        owner: owner.map(|it| it.id.to_string()),
        url: owner.map(|it| it.url.to_string()),
        epoch: record.epoch,
        session: RawValue::from_string(record.body.to_string()).ok(),
    };
    bytes(&text)
}

#[derive(Serialize, Deserialize)]
struct RecordText {
    protocol: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Box<RawValue>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(it: &bool) -> bool {
    !it
}

/// What the endpoint wants to know of a session; none if it was written by somebody else.
pub(crate) fn session(body: &str) -> Option<SessionRecord> {
    let it: SessionText = serde_json::from_str(body).ok()?;
    let SessionText { path, principal, hello, level, subscriptions } = it;
    Some(SessionRecord { path, principal, hello, level, subscriptions })
}

pub(crate) fn session_body(record: SessionRecord) -> Name {
    let SessionRecord { path, principal, hello, level, subscriptions } = record;
    let text = SessionText { path, principal, hello, level, subscriptions };
    serde_json::to_string(&text).unwrap_or_default().into()
}

#[derive(Serialize, Deserialize)]
struct SessionText {
    path: String,
    principal: String,
    hello: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<String>,
}

/// The heartbeat of the replica `id`; none if it is not understood.
pub(crate) fn member(id: &str, bytes: &[u8]) -> Option<Member> {
    let it: MemberText = serde_json::from_slice(bytes).ok()?;
    let owner = Owner { id: id.into(), url: it.url.into() };
    Some(Member { owner, protocol: it.protocol, sessions: it.sessions, age: it.age })
}

pub(crate) fn member_bytes(member: &Member) -> Vec<u8> {
    let Member { owner, protocol, sessions, age } = member;
    let (protocol, sessions, age) = (*protocol, *sessions, *age);
    bytes(&MemberText { protocol, url: owner.url.to_string(), sessions, age })
}

#[derive(Serialize, Deserialize)]
struct MemberText {
    protocol: u32,
    url: String,
    #[serde(default)]
    sessions: u64,
    #[serde(default)]
    age: u64,
}

/// The roster of a replica. One that is not understood has a member that nobody is, so nothing is concluded from it.
pub(crate) fn roster(bytes: &[u8]) -> Roster {
    let names = serde_json::from_slice::<Vec<String>>(bytes);
    names.map_or_else(|_| vec![Name::from("")], |it| it.into_iter().map(Name::from).collect())
}

pub(crate) fn roster_bytes(roster: &Roster) -> Vec<u8> {
    bytes(&roster.iter().map(|it| &**it).collect::<Vec<_>>())
}

/// An event: what its stream still owes, as a line of JSON, and the message behind it.
pub(crate) fn event(stream: u64, place: u64, bytes: &[u8]) -> Option<KeptEvent> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    let owes = serde_json::from_slice(&bytes[..at]).ok()?;
    Some(KeptEvent { stream, place, text: bytes[at + 1..].to_vec(), owes })
}

pub(crate) fn event_bytes(event: &KeptEvent) -> Vec<u8> {
    let mut whole = bytes(&event.owes);
    whole.push(b'\n');
    whole.extend_from_slice(&event.text);
    whole
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    // Texts and numbers always become JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let owner = Owner { id: "a".into(), url: "http://10.0.0.7:7474".into() };
        let body = session_body(SessionRecord {
            path: "/mcp".to_owned(),
            hello: r#"{"capabilities":{}}"#.to_owned(),
            level: Some("info".to_owned()),
            subscriptions: vec!["file:///a".to_owned()],
            ..SessionRecord::default()
        });
        assert_eq!(session(&body).map(session_body), Some(body.clone()));
        for ownership in [Ownership::Owned(owner.clone()), Ownership::Released, Ownership::Closed] {
            let it = Record { protocol: 1, ownership, epoch: 7, body: body.clone() };
            assert_eq!(record(&record_bytes(&it)), it);
        }
        let it = Member { owner, protocol: 1, sessions: 3, age: 60 };
        assert_eq!(member("a", &member_bytes(&it)), Some(it));
        let it: Roster = vec!["a".into(), "b".into()];
        assert_eq!(roster(&roster_bytes(&it)), it);
        let text = b"{\"jsonrpc\":\"2.0\"}\n".to_vec();
        let it = KeptEvent { stream: 3, place: 9, text, owes: vec!["\"x\"".to_owned()] };
        assert_eq!(event(3, 9, &event_bytes(&it)), Some(it));
    }

    #[test]
    fn what_a_later_protocol_wrote_is_left_alone() {
        let later =
            br#"{"protocol":2,"owner":"b","url":"http://b","epoch":3,"more":{},"session":{"x":1}}"#;
        let it = record(later);
        assert_eq!((it.protocol, it.epoch), (2, 3));
        assert_eq!(record(b"\x01").protocol, u32::MAX);
        assert_eq!(roster(b"?"), Roster::from(["".into()]));
    }
}

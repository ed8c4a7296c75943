//! A recorded call → what operators and files get of it, without secrets.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use trunkline_recording::line::{Begin, Direction, Line, Party, Side};
use trunkline_recording::redact::{MASK, Redactor};
use trunkline_recording::tree::Tree;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Message, Params};
use trunkline_wire::method::Method;

use super::call_log::{CallLog, Said};
use super::filter::{Facts, TrafficFilter};
use super::journal::Head;
use super::{CallEntry, Traffic};
use crate::merge::Kind;
use crate::policy::stamp::rfc3339;

impl Traffic {
    /// The calls that fit, newest first.
    pub(crate) fn list(&self, filter: &TrafficFilter, replica: Option<&str>) -> Value {
        let limit = filter.limit.unwrap_or(SHOWN).min(MOST_SHOWN);
        let wanted = self.wanted(filter, false).take(limit);
        let calls: Vec<Value> = wanted.map(|it| self.summary(&it, replica)).collect();
        let (dropped, oldest) = {
            let kept = self.kept();
            let oldest =
                kept.journal.head(kept.journal.numbers().start).map(|it| it.id.to_string());
            (kept.journal.dropped(), oldest)
        };
        json!({ "calls": calls, "dropped": dropped, "oldest": oldest })
    }

    /// One call with its messages, as JSON: messages keep their own spelling of numbers and their order of members.
    pub(crate) fn detail(&self, id: &str, replica: Option<&str>) -> Option<String> {
        let entry = {
            let kept = self.kept();
            let number = kept.journal.number_of(|it| it.id.to_string() == id)?;
            kept.journal.entry(number, Some(0))?
        };
        let mut told = self.summary(&entry, replica);
        let CallLog { said, keeps, left_out, .. } = &entry.log;
        let messages = self.redacted(&entry, said);
        let shown = said.iter().zip(messages).map(|(said, message)| Told {
            t: ms(said.at),
            side: said.side,
            dir: said.direction,
            size: said.size,
            message,
        });
        let note = match (keeps, left_out) {
            (false, _) => Some(
                "Messages are not kept; see `gateway.recording.payloads` and `sample`.".to_owned(),
            ),
            (true, 0) => None,
            (true, count) => Some(format!("{count} messages were too many or too large to keep.")),
        };
        told["note"] = json!(note);
        let messages = serde_json::to_string(&shown.collect::<Vec<_>>()).ok()?;
        let mut text = told.to_string();
        text.pop();
        text.push_str(",\"messages\":");
        text.push_str(&messages);
        text.push('}');
        Some(text)
    }

    /// The calls that fit as lines of a recording, oldest first.
    pub(crate) fn export(&self, filter: &TrafficFilter) -> Vec<u8> {
        let wanted = self.wanted(filter, true).take(filter.limit.unwrap_or(usize::MAX));
        let mut lines: Vec<Line> = wanted.flat_map(|it| self.lines(&it, 0)).collect();
        let mut out = Vec::new();
        self.write_begin(&mut out);
        lines.sort_by_key(|it| it.t);
        lines.iter().for_each(|it| it.write(&mut out));
        out
    }

    /// The first line of a recording.
    pub(crate) fn write_begin(&self, out: &mut Vec<u8>) {
        let now = SystemTime::now();
        let begin = Begin {
            at: rfc3339(now),
            by: concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned(),
            transport: "gateway".to_owned(),
            server: String::new(),
        };
        Line { recording: Some(begin), ..Line::at(unix_ms(now)) }.write(out);
    }

    /// The messages of a call that are in no file yet, as lines of a recording; `None` if it has made way.
    pub(crate) fn new_lines(&self, number: u64) -> Option<Vec<Line>> {
        let unwritten = self.kept().journal.unwritten(number);
        unwritten.map(|(entry, from)| self.lines(&entry, from))
    }

    /// The messages of a call but the first so many, as lines of a recording.
    fn lines(&self, entry: &CallEntry, from: usize) -> Vec<Line> {
        let CallEntry { head, log, .. } = entry;
        let said = log.said.get(from..).unwrap_or_default();
        let messages = self.redacted(entry, said);
        let began = self.at(head.began);
        // Clients of requests that stand for themselves may use the same ids.
        let stream = (!head.who.has_session).then(|| number_of(entry));
        let session = u32::try_from(head.who.conversation).ok().filter(|_| head.who.has_session);
        let line = |(said, message): (&Said, Option<Json>)| {
            let revision = match said.side {
                Side::Client => Some(log.spoken.unwrap_or(head.revision)),
                Side::Server => log.instance.map(|it| it.1),
            };
            Line {
                side: Some(said.side),
                dir: Some(said.direction),
                session: Some(session.unwrap_or(STATELESS)),
                stream,
                revision: revision.map(|it| it.as_str().to_owned()),
                call: Some(head.id.to_string()),
                principal: head.who.name.as_deref().map(str::to_owned),
                server: log.target.server().map(|it| it.to_string()),
                instance: log.instance.map(|it| it.0),
                message: Some(message?),
                ..Line::at(unix_ms(began + said.at))
            }
            .into()
        };
        said.iter().zip(messages).filter_map(line).collect()
    }

    /// The newest call of a client that claims this version, which only one has.
    pub(crate) fn id_of(&self, version: &str) -> Option<String> {
        let is_it = |it: &Head| {
            let info = it.who.peer.info.as_ref().filter(|_| it.is_call);
            info.is_some_and(|info| info.version == version)
        };
        let kept = self.kept();
        let number = kept.journal.number_of(is_it)?;
        Some(kept.journal.head(number)?.id.to_string())
    }

    /// Something that a server said to an operator, as JSON without secrets.
    pub(crate) fn clean(&self, value: &Value) -> String {
        let text = value.to_string();
        let Ok(mut tree) = Tree::parse(&text) else { return text };
        match self.redactor().redact(Party::Server, 0, &mut tree) {
            true => tree.to_text(),
            false => text,
        }
    }

    /// The last calls that ended, newest first, in short.
    pub(crate) fn recent(&self, limit: usize) -> Vec<Value> {
        let told = |entry: CallEntry| {
            let CallEntry { head, log, .. } = &entry;
            let is_list = head.method.known().is_some_and(|it| Kind::of_method(it).is_some());
            let (at, ended) = log.ended.filter(|_| head.is_call && !is_list)?;
            let redactor = self.redactor();
            let text = |it: &Arc<str>| redactor.text(it).into_owned();
            Some(json!({
                "time": rfc3339(self.at(at)),
                "server": log.target.server().map(|it| &**it),
                "method": head.method.as_str(),
                "name": log.target.name().map(text).unwrap_or_default(),
                "principal": head.who.name.as_deref(),
                "ms": ms(entry.after(at)),
                "outcome": ended.outcome.word(),
                "traceId": ended.trace.to_string(),
            }))
        };
        self.all(false).filter_map(told).take(limit).collect()
    }

    /// All changes to come.
    pub(super) fn follow(&self) -> broadcast::Receiver<u64> {
        self.updates.subscribe()
    }

    /// The calls that go on and fit.
    pub(super) fn running(&self, filter: &TrafficFilter) -> impl Iterator<Item = u64> {
        let numbers = self.kept().journal.numbers();
        let goes_on = move |it: &u64| self.kept().journal.has_ended(*it) == Some(false);
        let fits = move |it: &CallEntry| self.fits(it, filter);
        numbers.filter(goes_on).filter(move |it| self.entry(*it).as_ref().is_some_and(fits))
    }

    /// Those of the calls that have ended or made way.
    pub(super) fn ended_of(&self, calls: &HashSet<u64>) -> Vec<u64> {
        let kept = self.kept();
        calls.iter().copied().filter(|it| kept.journal.has_ended(*it) != Some(false)).collect()
    }

    /// A call without the texts of its messages, unless it has made way.
    pub(super) fn entry(&self, number: u64) -> Option<CallEntry> {
        self.kept().journal.entry(number, None)
    }

    /// All calls, newest first, with the texts of their messages or without. Others go on meanwhile.
    fn all(&self, has_texts: bool) -> impl Iterator<Item = CallEntry> {
        let numbers = self.kept().journal.numbers();
        let texts = has_texts.then_some(0);
        numbers.rev().filter_map(move |it| self.kept().journal.entry(it, texts))
    }

    fn wanted(&self, filter: &TrafficFilter, has_texts: bool) -> impl Iterator<Item = CallEntry> {
        let mut is_past = filter.before.is_none();
        self.all(has_texts).filter(move |entry| {
            let was_past = is_past;
            is_past |= filter.before.as_ref().is_some_and(|it| *it == entry.head.id.to_string());
            was_past && self.fits(entry, filter)
        })
    }

    pub(super) fn fits(&self, entry: &CallEntry, filter: &TrafficFilter) -> bool {
        if filter.fits_all() {
            return true;
        }
        let shown = Shown::of(entry, &self.redactor());
        filter.fits(&Facts {
            server: shown.server.as_deref().unwrap_or_default(),
            outcome: shown.outcome.unwrap_or("running"),
            principal: shown.principal.as_deref().unwrap_or_default(),
            method: entry.head.method.as_str(),
            name: shown.name.as_deref().unwrap_or_default(),
            client: shown.client.as_ref().map(|it| it.0.as_str()).unwrap_or_default(),
            reason: shown.reason.unwrap_or_default(),
            age: Instant::now().saturating_duration_since(entry.head.began),
        })
    }

    pub(super) fn summary(&self, entry: &CallEntry, replica: Option<&str>) -> Value {
        let shown = Shown::of(entry, &self.redactor());
        let CallEntry { head, log, .. } = entry;
        let now = Instant::now();
        let stages = log.stages(now).into_iter().map(
            |(stage, from, to)| json!({ "stage": stage.word(), "from": ms(from), "to": ms(to) }),
        );
        json!({
            "id": head.id.to_string(),
            "at": rfc3339(self.at(head.began)),
            "method": head.method.as_str(),
            "name": shown.name,
            "server": shown.server,
            "instance": log.instance.map(|it| it.0.to_string()),
            "principal": shown.principal,
            "client": shown.client.map(|(name, version)| json!({ "name": name, "version": version })),
            "revision": log.spoken.unwrap_or(head.revision).as_str(),
            "serverRevision": log.instance.map(|it| it.1.as_str()),
            "state": if log.ended.is_some() { "done" } else { "running" },
            "outcome": shown.outcome,
            "reason": shown.reason,
            "ms": ms(entry.after(log.ended.map_or(now, |it| it.0))),
            "stages": stages.collect::<Vec<_>>(),
            "bytesIn": log.bytes_in,
            "bytesOut": log.bytes_out,
            "rounds": log.rounds,
            "questions": log.questions,
            "replica": replica,
        })
    }

    /// The messages as they may be shown.
    fn redacted(&self, entry: &CallEntry, said: &[Said]) -> Vec<Option<Json>> {
        let messages: Vec<Option<Message>> = said.iter().map(Said::message).collect();
        let mut redactor = self.redactor();
        if let Some(tool) = entry.log.target.tool() {
            // The caller knows the tool by another name than its server.
            let names = messages.iter().flatten().filter_map(called);
            for name in names.chain([tool.name.clone()]) {
                redactor.know_tool(&name, Some(&tool.input_schema), tool.output_schema.as_ref());
            }
        }
        let mut masked = |(said, message): (&Said, &Option<Message>)| {
            // Each link has ids of its own.
            let session = number_of(entry).wrapping_mul(2).wrapping_add(said.side as u32);
            let message = message.as_ref()?;
            let json = Json::parse(match entry.head.is_call {
                true => message.to_text(),
                false => without_arguments(message).to_text(),
            });
            let json = json.ok()?;
            let mut tree = Tree::of(&json);
            let by = Party::of(said.side, said.direction);
            Some(if redactor.redact(by, session, &mut tree) { tree.to_json() } else { json })
        };
        said.iter().zip(&messages).map(&mut masked).collect()
    }
}

/// A message as it is shown.
#[derive(Serialize)]
struct Told {
    t: f64,
    side: Side,
    dir: Direction,
    size: usize,
    message: Option<Json>,
}

/// What is shown of a call beside its numbers.
struct Shown {
    server: Option<String>,
    name: Option<String>,
    principal: Option<String>,
    client: Option<(String, String)>,
    outcome: Option<&'static str>,
    reason: Option<&'static str>,
}

impl Shown {
    fn of(entry: &CallEntry, redactor: &Redactor) -> Self {
        let CallEntry { head, log, .. } = entry;
        let text = |it: &str| redactor.text(it).into_owned();
        let server = log.target.server().map(|it| text(it));
        let name = log.target.name().map(|it| &**it);
        let name = name.map(|name| match &server {
            // A URI names its place itself.
            Some(server) if !name.contains(':') => Cow::Owned(format!("{server}.{name}")),
            _ => Cow::Borrowed(name),
        });
        let info = head.who.peer.info.as_ref();
        Self {
            // What is said beside calls is about the server as a whole.
            name: name.map(|it| text(&it)).or_else(|| server.clone().filter(|_| !head.is_call)),
            server,
            principal: head.who.name.as_deref().map(text),
            client: info.map(|it| (text(&it.name), text(&it.version))),
            outcome: log.ended.map(|(_, it)| it.outcome.word()),
            reason: log.ended.and_then(|(_, it)| it.reason),
        }
    }
}

/// The tool that a request calls.
fn called(message: &Message) -> Option<String> {
    match message {
        Message::Request { params: Params::Object(params), .. } => {
            Some(params.get("name")?.as_str()?.into_owned())
        }
        _ => None,
    }
}

/// A call that nobody looked at: no schema says which of its arguments are secret.
fn without_arguments(message: &Message) -> Cow<'_, Message> {
    match message {
        Message::Request { id, method, params: Params::Object(params) }
            if *method == Method::ToolsCall && params.get("arguments").is_some() =>
        {
            let mut params = params.clone();
            params.set("arguments", Json::string(MASK));
            let (id, method) = (id.clone(), method.clone());
            Cow::Owned(Message::Request { id, method, params: Params::Object(params) })
        }
        _ => Cow::Borrowed(message),
    }
}

/// The number of an entry, as far as files have room for it.
fn number_of(entry: &CallEntry) -> u32 {
    u32::try_from(entry.number % u64::from(u32::MAX)).unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The conversation of requests that stand for themselves. Numbers of sessions begin at 1.
const STATELESS: u32 = 0;
/// How many calls a list shows, unless more are asked for, and at most.
const SHOWN: usize = 100;
const MOST_SHOWN: usize = 10_000;

//! A recorded call → what operators and files get of it, without secrets.

use std::borrow::Cow;
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

use super::call_log::Said;
use super::filter::{Facts, TrafficFilter};
use super::{CallEntry, Traffic};
use crate::merge::Kind;
use crate::policy::stamp::rfc3339;

impl Traffic {
    /// The calls that fit, newest first.
    pub(crate) fn list(&self, filter: &TrafficFilter, replica: Option<&str>) -> Value {
        let (all, dropped) = self.all();
        let oldest = all.last().map(|it| it.id.to_string());
        let limit = filter.limit.unwrap_or(SHOWN).min(MOST_SHOWN);
        let wanted = self.wanted(&all, filter).take(limit);
        let calls: Vec<Value> = wanted.map(|it| self.summary(it, replica)).collect();
        json!({ "calls": calls, "dropped": dropped, "oldest": oldest })
    }

    /// One call with its messages, as JSON: messages keep their own spelling of numbers and their order of members.
    pub(crate) fn detail(&self, id: &str, replica: Option<&str>) -> Option<String> {
        let entry = self.all().0.into_iter().find(|it| it.id.to_string() == id)?;
        let mut told = self.summary(&entry, replica);
        let (said, keeps, left_out) = {
            let log = entry.log();
            (log.said(0), log.keeps(), log.left_out)
        };
        let messages = self.redacted(&entry, &said);
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
        let (all, _) = self.all();
        let mut wanted: Vec<_> = self.wanted(&all, filter).collect();
        wanted.truncate(filter.limit.unwrap_or(usize::MAX));
        let mut out = Vec::new();
        self.write_begin(&mut out);
        let mut lines: Vec<Line> = wanted.iter().flat_map(|it| self.lines(it)).collect();
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

    /// The messages of a call as lines of a recording.
    fn lines(&self, entry: &CallEntry) -> Vec<Line> {
        let said = entry.log().said(0);
        self.lines_of(entry, &said)
    }

    /// The same for those that are in no file yet.
    pub(crate) fn new_lines(&self, entry: &CallEntry) -> Vec<Line> {
        let said = {
            let mut log = entry.log();
            let said = log.said(log.written);
            log.written += said.len();
            said
        };
        self.lines_of(entry, &said)
    }

    fn lines_of(&self, entry: &CallEntry, said: &[Said]) -> Vec<Line> {
        let (target, instance, spoken) = {
            let log = entry.log();
            (log.target.clone().unwrap_or_default(), log.instance, log.spoken)
        };
        let messages = self.redacted(entry, said);
        let began = self.at(entry.began);
        // Clients of requests that stand for themselves may use the same ids.
        let stream = (!entry.who.has_session).then(|| number_of(entry));
        let session = u32::try_from(entry.who.conversation).ok().filter(|_| entry.who.has_session);
        let line = |(said, message): (&Said, Option<Json>)| {
            let revision = match said.side {
                Side::Client => Some(spoken.unwrap_or(entry.revision)),
                Side::Server => instance.map(|it| it.1),
            };
            Line {
                side: Some(said.side),
                dir: Some(said.direction),
                session: Some(session.unwrap_or(STATELESS)),
                stream,
                revision: revision.map(|it| it.as_str().to_owned()),
                call: Some(entry.id.to_string()),
                principal: entry.who.name.clone(),
                server: target.server.as_deref().map(str::to_owned),
                instance: instance.map(|it| it.0),
                message: Some(message?),
                ..Line::at(unix_ms(began + said.at))
            }
            .into()
        };
        said.iter().zip(messages).filter_map(line).collect()
    }

    /// The newest call of a client that claims this version, which only one has.
    pub(crate) fn id_of(&self, version: &str) -> Option<String> {
        let is_it = |it: &CallEntry| {
            let info = it.who.peer.info.as_ref().filter(|_| it.is_call);
            info.is_some_and(|info| info.version == version)
        };
        let kept = self.kept();
        kept.ring.iter().find(|it| is_it(it)).map(|it| it.id.to_string())
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
        let (all, _) = self.all();
        let redactor = self.redactor();
        let told = |entry: &Arc<CallEntry>| {
            let log = entry.log();
            let is_list = entry.method.known().is_some_and(|it| Kind::of_method(it).is_some());
            let ended = log.ended.filter(|_| entry.is_call && !is_list)?;
            let target = log.target.clone().unwrap_or_default();
            let text = |it: &str| redactor.text(it).into_owned();
            Some(json!({
                "time": rfc3339(self.at(ended.at)),
                "server": target.server.as_deref(),
                "method": entry.method.as_str(),
                "name": target.name.as_deref().map(text).unwrap_or_default(),
                "principal": entry.who.name,
                "ms": ms(entry.after(ended.at)),
                "outcome": ended.outcome.word(),
                "traceId": ended.trace.to_string(),
            }))
        };
        all.iter().filter_map(told).take(limit).collect()
    }

    /// All changes to come.
    pub(super) fn follow(&self) -> broadcast::Receiver<Arc<CallEntry>> {
        self.updates.subscribe()
    }

    /// All calls, newest first, and how many made way.
    fn all(&self) -> (Vec<Arc<CallEntry>>, u64) {
        let kept = self.kept();
        (kept.ring.iter().cloned().collect(), kept.ring.dropped())
    }

    fn wanted<'a>(
        &'a self,
        all: &'a [Arc<CallEntry>],
        filter: &'a TrafficFilter,
    ) -> impl Iterator<Item = &'a Arc<CallEntry>> {
        let mut is_past = filter.before.is_none();
        all.iter().filter(move |entry| {
            let was_past = is_past;
            is_past |= filter.before.as_ref().is_some_and(|it| *it == entry.id.to_string());
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
            method: entry.method.as_str(),
            name: shown.name.as_deref().unwrap_or_default(),
            client: shown.client.as_ref().map(|it| it.0.as_str()).unwrap_or_default(),
            reason: shown.reason.unwrap_or_default(),
            age: Instant::now().saturating_duration_since(entry.began),
        })
    }

    pub(super) fn summary(&self, entry: &CallEntry, replica: Option<&str>) -> Value {
        let shown = Shown::of(entry, &self.redactor());
        let mut log = entry.log();
        log.is_shown = log.ended.is_some();
        let now = Instant::now();
        let stages = log.stages(now).into_iter().map(
            |(stage, from, to)| json!({ "stage": stage.word(), "from": ms(from), "to": ms(to) }),
        );
        json!({
            "id": entry.id.to_string(),
            "at": rfc3339(self.at(entry.began)),
            "method": entry.method.as_str(),
            "name": shown.name,
            "server": shown.server,
            "instance": log.instance.map(|it| it.0.to_string()),
            "principal": shown.principal,
            "client": shown.client.map(|(name, version)| json!({ "name": name, "version": version })),
            "revision": log.spoken.unwrap_or(entry.revision).as_str(),
            "serverRevision": log.instance.map(|it| it.1.as_str()),
            "state": if log.ended.is_some() { "done" } else { "running" },
            "outcome": shown.outcome,
            "reason": shown.reason,
            "ms": ms(entry.after(log.ended.map_or(now, |it| it.at))),
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
        let target = entry.log().target.clone().unwrap_or_default();
        let mut redactor = self.redactor();
        if let Some(tool) = &target.tool {
            // The caller knows the tool by another name than its server.
            let names = said.iter().filter_map(|it| called(it.message.as_ref()?));
            for name in names.chain([tool.name.clone()]) {
                redactor.know_tool(&name, Some(&tool.input_schema), tool.output_schema.as_ref());
            }
        }
        let mut masked = |said: &Said| {
            // Each link has ids of its own.
            let session = number_of(entry).wrapping_mul(2).wrapping_add(said.side as u32);
            let message = said.message.as_ref()?;
            let json = Json::parse(match entry.is_call {
                true => message.to_text(),
                false => without_arguments(message).to_text(),
            });
            let json = json.ok()?;
            let mut tree = Tree::of(&json);
            let by = Party::of(said.side, said.direction);
            Some(if redactor.redact(by, session, &mut tree) { tree.to_json() } else { json })
        };
        said.iter().map(&mut masked).collect()
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
        let log = entry.log();
        let text = |it: &str| redactor.text(it).into_owned();
        let target = log.target.as_ref();
        let server = target.and_then(|it| it.server.as_deref()).map(text);
        let name = target.and_then(|it| it.name.as_deref());
        let name = name.map(|name| match &server {
            // A URI names its place itself.
            Some(server) if !name.contains(':') => Cow::Owned(format!("{server}.{name}")),
            _ => Cow::Borrowed(name),
        });
        let info = entry.who.peer.info.as_ref();
        Self {
            // What is said beside calls is about the server as a whole.
            name: name.map(|it| text(&it)).or_else(|| server.clone().filter(|_| !entry.is_call)),
            server,
            principal: entry.who.name.as_deref().map(text),
            client: info.map(|it| (text(&it.name), text(&it.version))),
            outcome: log.ended.map(|it| it.outcome.word()),
            reason: log.ended.and_then(|it| it.reason),
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

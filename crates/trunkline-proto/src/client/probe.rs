//! Finds the era of a server: `server/discover` first, `initialize` if the answer says so.
//!
//! No single error code decides: older servers answer an unknown method in many ways, and only a
//! recognised stateless answer keeps us in that era.

use std::time::Instant;

use trunkline_wire::code;
use trunkline_wire::era::stateful;
use trunkline_wire::era::stateless::decode_server_info;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, Object, Outcome, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{DiscoverResult, InitializeParams, InitializeResult};
use trunkline_wire::revision::{Era, Revision, Revisions};

use super::{Client, OpenError, Opened, Phase};

impl Client {
    pub(super) fn probe(&mut self, revision: Revision, again: bool, now: Instant) {
        let id = self.asked.next_id();
        let mut params = Object::default();
        params.set("_meta", self.envelope(revision).to_json());
        self.send(Message::Request {
            id: Id::Number(id),
            method: Method::ServerDiscover.into(),
            params: Params::Object(params),
        });
        let deadline = self.open_by;
        // Over HTTP silence is an outage and says nothing about the era.
        let silence = if self.is_http { deadline } else { now + self.config.bounds.probe };
        self.phase = Phase::Probing { id, revision, silence, deadline, again };
    }

    pub(super) fn initialize(&mut self, may_probe: bool) {
        let Some(revision) = self.config.revisions.of_era(Era::Stateful).newest() else {
            let ours = self.config.revisions;
            return self.fail(OpenError::NoCommonRevision { ours, theirs: Vec::new() });
        };
        let params = InitializeParams::new(
            revision.as_str(),
            self.config.capabilities.clone(),
            self.config.info.clone(),
        );
        let params = stateful::encode_params(params, revision.profile());
        let id = self.asked.next_id();
        self.send(Message::Request {
            id: Id::Number(id),
            method: Method::Initialize.into(),
            params: Params::Object(params),
        });
        self.phase = Phase::Initializing { id, deadline: self.open_by, may_probe };
    }

    pub(super) fn on_probe_answer(&mut self, outcome: Outcome, now: Instant) {
        let Phase::Probing { revision, again, .. } = self.phase else { return };
        match classify(&outcome, self.config.revisions, revision, self.is_http) {
            Verdict::Stateless(facts) => self.open(*facts),
            Verdict::ProbeAgain(revision) if !again => self.probe(revision, true, now),
            Verdict::ProbeAgain(it) if it == revision => {
                self.fail(outcome.err().map_or(OpenError::TimedOut, OpenError::Refused));
            }
            Verdict::ProbeAgain(_) => {
                self.fail(OpenError::Invalid("the list of its revisions changes.".to_owned()));
            }
            // With no older revision to fall back to, an unknown method means an older server; any
            // other error is reported as it is.
            Verdict::Initialize(theirs)
                if self.config.revisions.of_era(Era::Stateful).is_empty() =>
            {
                let ours = self.config.revisions;
                self.fail(match outcome {
                    Err(error) if theirs.is_empty() && error.code != code::METHOD_NOT_FOUND => {
                        OpenError::Refused(error)
                    }
                    _ => OpenError::NoCommonRevision { ours, theirs },
                });
            }
            Verdict::Initialize(_) => self.initialize(!again),
            Verdict::Fail(error) => self.fail(error),
        }
    }

    pub(super) fn on_initialize_answer(&mut self, outcome: Outcome, now: Instant) {
        let Phase::Initializing { may_probe, .. } = self.phase else { return };
        let stateless = self.config.revisions.of_era(Era::Stateless).newest();
        let result = match (outcome, stateless) {
            (Ok(result), _) => result,
            // A stateless server that started slowly answered the probe too late, so probe again. Or it
            // was never probed, and refused the era that we prefer.
            (Err(error), Some(revision))
                if may_probe
                    && (error.code == code::UNSUPPORTED_REVISION
                        || self.config.prefers == Era::Stateful) =>
            {
                return self.probe(revision, true, now);
            }
            (Err(error), _) => return self.fail(refusal(error, self.config.revisions)),
        };
        let result: InitializeResult = match result.to() {
            Ok(result) => result,
            Err(err) => return self.fail(OpenError::Invalid(format!("{err}."))),
        };
        let revision = Revision::parse(&result.protocol_version)
            .filter(|it| self.config.revisions.of_era(Era::Stateful).contains(*it));
        let Some(revision) = revision else {
            let ours = self.config.revisions;
            let theirs = vec![result.protocol_version];
            return self.fail(OpenError::NoCommonRevision { ours, theirs });
        };
        self.send(Message::notification(Method::Initialized, Params::Absent));
        self.open(Opened {
            revision,
            info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
        });
    }

    pub(super) fn on_handshake_tick(&mut self, now: Instant) {
        match self.phase {
            Phase::Probing { silence, deadline, again, .. } if silence.min(deadline) <= now => {
                // Over a pipe, silence means an old server that drops unknown methods.
                if deadline <= now || self.config.revisions.of_era(Era::Stateful).is_empty() {
                    self.fail(OpenError::TimedOut);
                } else {
                    self.initialize(!again);
                }
            }
            Phase::Initializing { deadline, .. } if deadline <= now => {
                self.fail(OpenError::TimedOut)
            }
            _ => {}
        }
    }
}

/// What the answer to the probe means.
#[derive(Debug, PartialEq)]
enum Verdict {
    Stateless(Box<Opened>),
    ProbeAgain(Revision),
    /// An older server, with the revisions it named, if any.
    Initialize(Vec<String>),
    Fail(OpenError),
}

fn classify(outcome: &Outcome, ours: Revisions, probed: Revision, is_http: bool) -> Verdict {
    match outcome {
        Ok(result) => match result.to::<DiscoverResult>() {
            Ok(found) => on_discovered(found, result, ours),
            Err(_) => Verdict::Initialize(Vec::new()),
        },
        Err(error) if error.code == code::UNSUPPORTED_REVISION => {
            let theirs = supported(error).unwrap_or_default();
            let stateless = of_era(&theirs, Era::Stateless);
            match stateless.common(ours).newest() {
                Some(revision) if revision != probed => Verdict::ProbeAgain(revision),
                // A proxy may have dropped a header, once.
                Some(revision) if is_http => Verdict::ProbeAgain(revision),
                Some(_) => Verdict::Fail(OpenError::Refused(error.clone())),
                // It speaks only stateless or newer revisions, none of ours; `initialize` would not
                // help.
                None if !theirs.is_empty() && of_era(&theirs, Era::Stateful).is_empty() => {
                    Verdict::Fail(OpenError::NoCommonRevision { ours, theirs })
                }
                None => Verdict::Initialize(theirs),
            }
        }
        Err(error) if is_http && error.code == code::HEADER_MISMATCH => {
            Verdict::Fail(OpenError::Refused(error.clone()))
        }
        Err(error) if is_of_the_new_era(error) => Verdict::Fail(OpenError::Refused(error.clone())),
        Err(_) => Verdict::Initialize(Vec::new()),
    }
}

fn on_discovered(found: DiscoverResult, result: &Json, ours: Revisions) -> Verdict {
    let common = of_era(&found.supported_versions, Era::Stateless).common(ours);
    let Some(revision) = common.newest() else {
        let theirs = found.supported_versions;
        return match of_era(&theirs, Era::Stateful).is_empty() && !theirs.is_empty() {
            // It speaks only newer revisions; `initialize` would not help.
            true => Verdict::Fail(OpenError::NoCommonRevision { ours, theirs }),
            false => Verdict::Initialize(theirs),
        };
    };
    Verdict::Stateless(Box::new(Opened {
        revision,
        info: decode_server_info(result),
        capabilities: found.capabilities,
        instructions: found.instructions,
    }))
}

/// An error that only a stateless server sends: the fault is ours, not the era's.
fn is_of_the_new_era(error: &ErrorObject) -> bool {
    let names_capabilities = || {
        let data = error.data.as_ref()?;
        Object::parse(data.get()).ok()?.get("requiredCapabilities").map(|_| ())
    };
    error.code == code::MISSING_CLIENT_CAPABILITY && names_capabilities().is_some()
}

fn refusal(error: ErrorObject, ours: Revisions) -> OpenError {
    match supported(&error) {
        Some(theirs) => OpenError::NoCommonRevision { ours, theirs },
        None => OpenError::Refused(error),
    }
}

fn supported(error: &ErrorObject) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    Some(error.data.as_ref()?.to::<Data>().ok()?.supported)
}

/// The known revisions of one era in a list of names.
fn of_era(names: &[String], era: Era) -> Revisions {
    let known: Revisions = names.iter().filter_map(|it| Revision::parse(it)).collect();
    known.of_era(era)
}

//! Skills (SEP-2640): merges the skills of all servers into one list and reads each at its server.

use std::sync::Arc;

use trunkline_wire::era::{stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Gate;
use trunkline_wire::model::{ListSkillsResult, Skill, SkillFiles};

use super::decide::Permit;
use super::{CallFailure, CallOutcome, Walk};
use crate::call_record::CallRecord;
use crate::catalog::plan::Effect;
use crate::merge::index::uris::wrap;
use crate::merge::{Index, Item, Missing, Target};
use crate::server::Server;
use crate::state::Visibility;

impl Walk {
    /// The skills of all servers that the caller sees. If a server does not answer, the list goes without
    /// its skills and says so.
    pub(super) async fn skills(
        &mut self,
        record: &mut CallRecord,
    ) -> Result<CallOutcome, CallFailure> {
        self.shared.complete(&self.shared.active_plan(), &self.view).await;
        let (active, index) = (self.shared.active_plan(), self.view.index(&self.shared));
        let visibility = Visibility::new(&active, &self.caller);
        let has_skills = |it: &&Arc<Server>| {
            it.lists().is_some_and(|lists| lists.capabilities.supports(Gate::Skills))
        };
        let servers = active.servers.values().filter(has_skills);
        let servers = servers.filter(|it| self.view.selector.chooses(&it.plan()));
        let permits: Vec<_> = servers.filter_map(|it| Permit::to_list(&visibility, it)).collect();
        let (mut all, mut missing, mut room) = (Vec::new(), Missing::default(), BYTES);
        for permit in permits {
            let server = permit.server();
            match self.skills_of(record, &permit).await {
                Ok(skills) => {
                    let shown = skills.into_iter().filter_map(|it| self.shown(&index, server, it));
                    for skill in shown {
                        let size = Json::of(&skill).get().len();
                        if size > room {
                            let why = "Its skills are too long to be listed with all others.";
                            missing.0.push((Arc::clone(&server.name), why.to_owned()));
                            break;
                        }
                        room -= size;
                        all.push(skill);
                    }
                }
                Err(why) => missing.0.push((Arc::clone(&server.name), why)),
            }
        }
        let list = stateful::encode(
            ListSkillsResult::new(all),
            self.call.revision,
            &stateless::Extras::default(),
        );
        Ok(CallOutcome::Told(if missing.is_empty() { list } else { missing.within(list) }))
    }

    /// The skills of one server, or why they are unknown.
    async fn skills_of(
        &mut self,
        record: &mut CallRecord,
        permit: &Permit,
    ) -> Result<Vec<Skill>, String> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PAGES {
            let mut params = Object::default();
            if let Some(cursor) = cursor.take() {
                params.set("cursor", Json::string(&cursor));
            }
            self.call.params = params;
            let page = match self.at(record, permit, true).await {
                Ok(CallOutcome::Answer(page, _)) => page,
                Ok(_) => {
                    return Err("It asked a question instead of listing its skills.".to_owned());
                }
                Err(CallFailure::Here(failure)) => return Err(failure.message.clone()),
                Err(CallFailure::Server(error, _) | CallFailure::Plain(error)) => {
                    return Err(error.message);
                }
            };
            let page: ListSkillsResult =
                page.to().map_err(|error| format!("Its list cannot be read: {error}."))?;
            all.extend(page.skills);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(all)
    }

    /// A skill under URIs that the caller can read here, if rules let it see the skill. All files of one
    /// skill are at one server.
    fn shown(&self, index: &Index, server: &Server, mut skill: Skill) -> Option<Skill> {
        let target = Target {
            server: Arc::clone(&server.name),
            name: (*skill.uri).into(),
            item: Item::Unlisted,
        };
        if self.may(&target) == Effect::Deny {
            return None;
        }
        let is_bare = index.shown_uri(&server.name, &skill.uri) == skill.uri
            && files(&mut skill).all(|it| index.shown_uri(&server.name, it) == *it);
        if !is_bare {
            lengthen(&mut skill, &server.name);
        }
        Some(skill)
    }

    /// Rewrites the answer to `skills/get` or `resources/directory/read` to the URI form that the caller
    /// used.
    pub(super) fn as_asked(
        &self,
        record: &CallRecord,
        asked: &str,
        outcome: CallOutcome,
    ) -> CallOutcome {
        let (CallOutcome::Answer(said, revision), Some(server)) = (&outcome, record.server())
        else {
            return outcome;
        };
        let is_long = record.name().is_none_or(|it| **it != *asked);
        match self.told(said, server, is_long) {
            Some(told) => CallOutcome::Answer(told, *revision),
            None => outcome,
        }
    }

    /// A skill or directory as the caller sees it: with long URIs if it asked with one, and without what it
    /// may not read.
    fn told(&self, said: &Json, server: &Arc<str>, is_long: bool) -> Option<Json> {
        let mut result = Object::parse(said.get()).ok()?;
        if let Some(mut skill) = result.get("skill").and_then(|it| it.to::<Skill>().ok()) {
            if is_long {
                lengthen(&mut skill, server);
            }
            result.set("skill", Json::of(&skill));
        }
        if let Some(mut resources) = result.get("resources").and_then(|it| it.to().ok()) {
            let all: &mut Vec<Object> = &mut resources;
            all.retain_mut(|it| {
                let uri = it.get("uri").and_then(|it| it.to::<String>().ok()).unwrap_or_default();
                if is_long {
                    it.set("uri", Json::string(&wrap(server, &uri)));
                }
                let (server, name) = (Arc::clone(server), uri.into());
                self.may(&Target { server, name, item: Item::Unlisted }) != Effect::Deny
            });
            result.set("resources", Json::of(&resources));
        }
        Some(result.to_json())
    }
}

fn files(skill: &mut Skill) -> impl Iterator<Item = &mut String> {
    let files = match &mut skill.resources {
        SkillFiles::Listed(files) => files.as_mut_slice(),
        SkillFiles::Dynamic => &mut [],
    };
    files.iter_mut().map(|it| &mut it.uri)
}

fn lengthen(skill: &mut Skill, server: &str) {
    skill.uri = wrap(server, &skill.uri);
    files(skill).for_each(|it| *it = wrap(server, it));
}

/// How many pages of one server are read, and how many bytes all skills may take together.
const PAGES: usize = 16;
const BYTES: usize = 1 << 20;

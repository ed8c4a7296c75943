//! Turns the name in a request into a target at a server. What the caller may not know of does not exist.

use std::sync::Arc;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;

use super::automatic::{self, Automatic};
use super::completed::{self, Completed};
use super::{CallFailure, CallOutcome, Walk, clip, tasks};
use crate::call_record::CallRecord;
use crate::catalog::nearest;
use crate::catalog::plan::Effect;
use crate::failure::{Failure, Reason, Stage};
use crate::merge::{Index, Kind, Target};
use crate::policy::audit::Decision;
use crate::policy::pins::Part;
use crate::server::Server;
use crate::state::Visibility;

/// What a request resolves to.
pub(super) enum Resolved {
    /// A target at a server.
    About(About),
    /// An answer that needs no server.
    Told(CallOutcome),
}

/// A target that the caller may know of, and what to do with it.
pub(super) struct About {
    pub(super) target: Arc<Target>,
    pub(super) server: Arc<Server>,
    pub(super) work: Work,
    /// What rates count and users are asked about, if not the target.
    pub(super) asked_about: Option<Arc<Target>>,
    /// Whether the user has to approve first.
    pub(super) asks: bool,
    /// The target's own name as a request has it, if that is known already.
    pub(super) spelled: Option<Json>,
}

/// What to do with the target.
pub(super) enum Work {
    Tool,
    Prompt,
    Resource,
    /// A resource of a skill, by the URI that the caller sent.
    Skill(String),
    Completion(Option<Box<Completed>>),
}

impl Walk {
    pub(super) async fn resolve(
        &mut self,
        record: &mut CallRecord,
    ) -> Result<Resolved, CallFailure> {
        match self.call.method.method {
            // Boxed, so that the call of a known tool does not carry the size of what waits.
            Method::ToolsCall => match self.known_tool(record) {
                Some(known) => known,
                None => Box::pin(self.tool(record)).await,
            },
            Method::PromptsGet => Box::pin(self.prompt(record)).await,
            Method::ResourcesRead => Box::pin(self.resource(record, None)).await,
            Method::CompletionComplete => Box::pin(self.completion(record)).await,
            Method::SkillsList => Box::pin(self.skills(record)).await.map(Resolved::Told),
            Method::SkillsGet | Method::ResourcesDirectoryRead => {
                let asked = self.named("uri")?;
                Box::pin(self.resource(record, Some(asked))).await
            }
            method if method.name().starts_with("tasks/") => {
                Box::pin(tasks::manage(self, record)).await.map(Resolved::Told)
            }
            method => Err(ErrorObject::method_not_found(method.name()).into()),
        }
    }

    /// Resolves a tool that the view has. `None` for a name that is not there, which [`Self::tool`] may
    /// have to wait for.
    fn known_tool(&self, record: &mut CallRecord) -> Option<Result<Resolved, CallFailure>> {
        if self.active.plan.gateway.automatic.is_some() {
            return None;
        }
        let shown = self.call.params.get("name")?.as_str()?;
        let (target, spelled) = self.view.look(&self.shared, |index| {
            let (target, spelled) = index.called_tool(&shown)?;
            Some((Arc::clone(target), spelled.clone()))
        })?;
        let mut found = self.found_tool(record, &shown, Some(target));
        if let Ok(Resolved::About(about)) = &mut found {
            about.spelled = Some(spelled);
        }
        Some(found)
    }

    async fn tool(&mut self, record: &mut CallRecord) -> Result<Resolved, CallFailure> {
        let mut shown: String = self.named("name")?;
        if self.active.plan.gateway.automatic.is_some() {
            match automatic::call(self, &shown) {
                Some(Automatic::Told(told)) => return Ok(Resolved::Told(told)),
                Some(Automatic::Call(inner)) => shown = inner,
                None => {}
            }
        }
        let mut index = self.index(&shown, |it| it.tool(&shown).is_some()).await;
        if index.tool(&shown).is_none() && self.may_log_in_to_unknown(&shown) {
            if let Some(question) = self.log_in_to_unknown(&shown).await? {
                return Ok(Resolved::Told(question));
            }
            index = self.index(&shown, |it| it.tool(&shown).is_some()).await;
        }
        self.found_tool(record, &shown, index.tool(&shown).cloned())
    }

    fn found_tool(
        &self,
        record: &mut CallRecord,
        shown: &str,
        found: Option<Arc<Target>>,
    ) -> Result<Resolved, CallFailure> {
        let asks = found.as_ref().and_then(|it| self.allowed(record, it));
        let (Some(target), Some(asks)) = (found, asks) else {
            return Err(self.no_tool(record, shown));
        };
        if target.tool().is_none() {
            return Err(ErrorObject::invalid_params("This is not a tool.").into());
        }
        self.about(record, target, asks, Work::Tool).map(Resolved::About)
    }

    /// Why there is no such tool.
    fn no_tool(&self, record: &mut CallRecord, shown: &str) -> CallFailure {
        record.named.get_or_insert_with(|| clip(shown).into());
        if let Some(held) = self.held(record, Part::Tool, shown) {
            return held;
        }
        let message = format!("There is no tool `{}` here.", clip(shown));
        let mut failure = Failure::new(Reason::UnknownTool, Stage::Route, message);
        let visibility = Visibility::new(&self.active, &self.caller);
        if let Some(why) = self.active.why_not(&visibility, shown) {
            return failure.advice(why).into();
        }
        let index = self.view.index(&self.shared);
        let names = || {
            let seen = index.iter(Kind::Tools).filter(|(_, it)| self.may(it) != Effect::Deny);
            seen.map(|(name, _)| &**name)
        };
        // A caller used to the server alone leaves out the prefix that the gateway adds.
        let is_own = |name: &str| name.split_once('.').is_some_and(|(_, own)| own == shown);
        if let Some(near) = names().find(|it| is_own(it)).or_else(|| nearest(shown, names())) {
            failure = failure.advice(format!("Did you mean `{near}`?"));
        }
        failure.into()
    }

    async fn prompt(&mut self, record: &mut CallRecord) -> Result<Resolved, CallFailure> {
        let shown: String = self.named("name")?;
        let mut index = self.index(&shown, |it| it.prompt(&shown).is_some()).await;
        if index.prompt(&shown).is_none() && self.may_log_in_to_unknown(&shown) {
            if let Some(question) = self.log_in_to_unknown(&shown).await? {
                return Ok(Resolved::Told(question));
            }
            index = self.index(&shown, |it| it.prompt(&shown).is_some()).await;
        }
        let found = index.prompt(&shown).and_then(|it| Some((it, self.allowed(record, it)?)));
        let (target, asks) = found.ok_or_else(|| {
            record.named.get_or_insert_with(|| clip(&shown).into());
            if let Some(held) = self.held(record, Part::Prompt, &shown) {
                return held;
            }
            let message = format!("There is no prompt `{}` here.", clip(&shown));
            Failure::new(Reason::UnknownPrompt, Stage::Route, message).into()
        })?;
        self.about(record, target.clone(), asks, Work::Prompt).map(Resolved::About)
    }

    async fn resource(
        &mut self,
        record: &mut CallRecord,
        skill: Option<String>,
    ) -> Result<Resolved, CallFailure> {
        let uri: String = self.named("uri")?;
        self.call.params.take("arguments");
        let index = self.index("", |it| !it.claims(&uri).is_empty()).await;
        record.named = Some(clip(&uri).into());
        let (target, asks) = self.find(record, &index, &uri)?;
        let work = skill.map_or(Work::Resource, Work::Skill);
        self.about(record, target, asks, work).map(Resolved::About)
    }

    /// Finds a resource that the caller may read: at the one server that claims it, or else at the one
    /// whose result named it.
    fn find(
        &self,
        record: &mut CallRecord,
        index: &Index,
        uri: &str,
    ) -> Result<(Arc<Target>, bool), CallFailure> {
        let claims = self.shared.named.places(index, &self.caller, uri);
        let allowed = |it: &Target| match self.may(it) {
            Effect::Deny => None,
            effect => Some((Arc::new(it.clone()), effect == Effect::Ask)),
        };
        let mut found: Vec<_> = claims.iter().filter_map(allowed).collect();
        match found.len() {
            0 => {
                claims.first().map(|it| self.allowed(record, &Arc::new(it.clone())));
                Err(ErrorObject::resource_not_found(uri, self.call.revision).into())
            }
            1 => Ok(found.remove(0)),
            _ => {
                let found: Vec<_> = found.into_iter().map(|(it, _)| Target::clone(&it)).collect();
                Err(crate::named::ambiguous(uri, &found).into())
            }
        }
    }

    async fn completion(&mut self, record: &mut CallRecord) -> Result<Resolved, CallFailure> {
        #[derive(serde::Deserialize)]
        struct Reference {
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            uri: Option<String>,
        }
        let bad = || ErrorObject::invalid_params("`ref` names neither a prompt nor a template.");
        let unknown = || {
            let message = "There is no such prompt or template here.";
            Failure::new(Reason::UnknownReference, Stage::Route, message)
        };
        let reference = self.call.params.get("ref").ok_or_else(bad)?;
        let mut object = Object::parse(reference.get()).map_err(|_| bad())?;
        let reference: Reference = object.to().map_err(|_| bad())?;
        let index = self.index("", |it| {
            let prompt = reference.name.as_deref().and_then(|name| it.prompt(name));
            prompt.is_some()
                || reference.uri.as_deref().is_some_and(|uri| it.template(uri).is_some())
        });
        let index = index.await;
        let (member, target) = match (&reference.name, &reference.uri) {
            (Some(name), _) => ("name", index.prompt(name).cloned()),
            (_, Some(uri)) => {
                let listed = || index.resource(uri).map(Arc::new);
                ("uri", index.template(uri).cloned().or_else(listed))
            }
            _ => return Err(bad().into()),
        };
        let target = target.and_then(|it| Some((self.allowed(record, &it)?, it)));
        let (asks, target) = target.ok_or_else(unknown)?;
        object.set(member, Json::string(&target.name));
        self.call.params.set("ref", object.to_json());
        let completed = Completed::of(self, &target, &self.call.params);
        let mut about = self.about(record, target, asks, Work::Completion(None))?;
        if let Some(typed) = completed.as_ref().map(Completed::target).map(Arc::new) {
            let asks = self.allowed(record, &typed).ok_or_else(unknown)?;
            if asks {
                (about.asked_about, about.asks) = (Some(typed), true);
            }
        }
        about.work = Work::Completion(completed.map(Box::new));
        // Rules, users and plugins see the completion as arguments.
        completed::pack(&mut self.call.params);
        Ok(Resolved::About(about))
    }

    fn about(
        &self,
        record: &mut CallRecord,
        target: Arc<Target>,
        asks: bool,
        work: Work,
    ) -> Result<About, CallFailure> {
        let server = self.server(&target)?;
        record.is(&target);
        Ok(About { target, server, work, asked_about: None, asks, spelled: None })
    }

    /// Whether rules let the caller know of the target, and if so whether the user has to approve. A denial
    /// is recorded as such, whatever the caller is told.
    pub(super) fn allowed(&self, record: &mut CallRecord, target: &Arc<Target>) -> Option<bool> {
        match self.may(target) {
            Effect::Allow => Some(false),
            Effect::Ask => Some(true),
            Effect::Deny => {
                record.is(target);
                record.decision = Decision::Denied;
                None
            }
        }
    }

    /// The index, waiting for servers whose lists are unknown only if the target is not found without them:
    /// for the server that the name starts with as long as its start takes, for all others a limited time.
    async fn index(&self, shown: &str, is_there: impl Fn(&Index) -> bool) -> Arc<Index> {
        let index = self.view.index(&self.shared);
        if is_there(&index) {
            return index;
        }
        if let Some(server) = self.unknown_server(shown) {
            Box::pin(self.with_progress(&server, self.shared.refresh(&server, true))).await;
            return self.view.index(&self.shared);
        }
        // The index belongs to the plan in force now, which may be newer than the call's.
        self.shared.complete(&self.shared.active_plan(), &self.view).await;
        self.view.index(&self.shared)
    }

    fn named(&self, member: &'static str) -> Result<String, ErrorObject> {
        self.call
            .params
            .get(member)
            .and_then(|it| it.to().ok())
            .ok_or_else(|| ErrorObject::invalid_params(format!("`{member}` must be a string.")))
    }
}

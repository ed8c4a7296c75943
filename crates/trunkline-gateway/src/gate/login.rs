//! `auth.perUser`: a call at a server where its principal has to log in first. The caller gets the login
//! page's URL, in the form that its revision knows.

use trunkline_wire::code::URL_ELICITATION_REQUIRED;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    ElicitAction, ElicitParams, ElicitResult, ElicitUrl, InputRequest, InputRequired,
};
use trunkline_wire::revision::Era;

use super::{CallFailure, CallOutcome, Walk};
use crate::accounts::Owner;
use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Reason, Stage};
use crate::seal::Sealed;

impl Walk {
    /// Asks the caller to log in, unless it has. `Some` ends this round with the question; the caller
    /// retries the call afterwards.
    pub(super) async fn log_in_first(
        &mut self,
        plan: &ServerPlan,
    ) -> Result<Option<CallOutcome>, CallFailure> {
        if plan.per_user().is_none() {
            return Ok(None);
        }
        let answer = self.login_answer(plan);
        if !self.has_to_log_in(plan) {
            return Ok(None);
        }
        if answer == Some(ElicitAction::Accept) {
            if self.shared.accounts.wait(&plan.name, &self.caller.id).await {
                return Ok(None);
            }
        } else if answer.is_some() {
            let message = format!("The login to `{}` was declined.", plan.name);
            return Err(Failure::new(Reason::LoginDeclined, Stage::Policy, message)
                .of(&plan.name)
                .advice("Make the call again to be asked once more.")
                .into());
        }
        self.ask_to_log_in(plan).map(Some)
    }

    /// Whether a name starts with a server whose lists are unknown and where the caller has to log in.
    pub(super) fn may_log_in_to_unknown(&self, shown: &str) -> bool {
        self.unknown_server(shown).is_some_and(|it| self.has_to_log_in(&it.plan()))
    }

    /// [`Self::log_in_first`] at the server that a name starts with, while its lists are unknown.
    pub(super) async fn log_in_to_unknown(
        &mut self,
        shown: &str,
    ) -> Result<Option<CallOutcome>, CallFailure> {
        let Some(server) = self.unknown_server(shown) else { return Ok(None) };
        self.log_in_first(&server.plan()).await
    }

    /// Tells the caller which page to log in at.
    pub(super) fn ask_to_log_in(&self, plan: &ServerPlan) -> Result<CallOutcome, CallFailure> {
        let server = &plan.name;
        let Some(name) = &self.caller.name else {
            let message = format!(
                "`{server}` has a login for each principal, and this connection is nobody's."
            );
            return Err(Failure::new(Reason::LoginRequired, Stage::Policy, message)
                .of(server)
                .advice("Connect over HTTP with a token of `gateway.auth`.")
                .into());
        };
        let (id, issuer) = (self.caller.id.clone(), self.caller.issuer.clone());
        let owner = Owner { id, name: name.to_string(), issuer, server: server.clone() };
        let (url, elicitation) = self.shared.accounts.link(&owner)?;
        let message =
            format!("`{server}` wants a login of your own. Open the page and log in there.");
        let mut asked = ElicitUrl::new(message.clone(), url.clone());
        match (self.call.revision.era(), self.call.peer.client.elicitation) {
            (Era::Stateless, Some(it)) if it.url => {
                let request = InputRequest::Elicit(ElicitParams::Url(asked));
                let mut input = InputRequired::new(vec![(KEY.to_owned(), request)]);
                let bound = self.bound_to_login(server);
                input.state = Some(self.shared.seals.state(&Sealed::Login, &bound));
                Ok(CallOutcome::Ask(Box::new(input)))
            }
            (Era::Stateful, Some(it)) if it.url => {
                asked.elicitation_id = Some(elicitation.clone());
                self.shared.accounts.will_complete(elicitation, owner, &self.handle);
                let mut data = Object::default();
                data.set("elicitations", Json::of(&[ElicitParams::Url(asked)]));
                let error = ErrorObject::new(URL_ELICITATION_REQUIRED, message);
                Err(error.with_data(data.to_json()).into())
            }
            _ => {
                let advice = format!("Open {url} in a browser, log in, and make the call again.");
                let message = format!("`{server}` wants a login of your own.");
                Err(Failure::new(Reason::LoginRequired, Stage::Policy, message)
                    .of(server)
                    .advice(advice)
                    .into())
            }
        }
    }

    /// Whether the caller has no valid login at the server.
    pub(super) fn has_to_log_in(&self, plan: &ServerPlan) -> bool {
        plan.per_user().is_some() && !self.shared.accounts.is_logged_in(&plan.name, &self.caller.id)
    }

    /// The user's answer to the login question, if this call is the retry that carries it.
    fn login_answer(&mut self, plan: &ServerPlan) -> Option<ElicitAction> {
        let state = self.call.params.get("requestState")?.to::<String>().ok()?;
        let bound = self.bound_to_login(&plan.name);
        let Some(Sealed::Login) = self.shared.seals.open_state(&state, &bound) else { return None };
        self.call.params.take("requestState");
        let answers = self.call.params.take("inputResponses")?;
        let answer = Object::parse(answers.get()).ok()?.get(KEY)?.to::<ElicitResult>().ok()?;
        Some(answer.action)
    }

    /// The binding leaves out the target: it is unknown until the server has listed what it offers.
    fn bound_to_login(&self, server: &str) -> String {
        format!("{}\0login\0{server}", self.caller.id)
    }
}

/// The key of the question in `inputRequests`.
const KEY: &str = "login";

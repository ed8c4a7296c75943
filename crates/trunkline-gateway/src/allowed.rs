//! Evaluates a token against a catalog: who its bearer would be, and what it would be allowed.

use serde::Serialize;
use trunkline_auth::resource::HeadView;

use crate::bearer::Bearer;
use crate::catalog::plan::{Effect, Plan, Rule};
use crate::failure::{Failure, Reason, Stage};
use crate::front;
use crate::policy::rules::{Globs, Rules};

/// What the bearer of a token would be allowed.
#[derive(Clone, Debug, Serialize)]
pub struct Allowed {
    /// The name for rules and audit.
    pub principal: String,
    /// Further names for rules, from claims.
    pub also: Vec<String>,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// The tags that limit what it sees, beside untagged servers; `None` for everything.
    pub tags: Option<Vec<String>>,
    /// The servers of which it sees something.
    pub servers: Vec<String>,
    /// The servers of which it sees nothing, and why.
    pub hidden: Vec<(String, String)>,
    /// The rules that apply to it, in order.
    pub rules: Vec<String>,
}

/// Evaluates a token against a catalog. Fetches the keys of its issuer, if it has one.
///
/// # Errors
///
/// If the catalog admits everyone, or refuses this token: with the words that the client would get.
pub async fn allowed(plan: &Plan, token: &str) -> Result<Allowed, Failure> {
    let auth = &plan.gateway.auth;
    let Some(gate) = front::gate(auth, &format!("http://{}", plan.gateway.listen))? else {
        let message = "The catalog has no `auth`: everybody is let in, without a token.";
        return Err(Failure::new(Reason::NoAuth, Stage::Policy, message));
    };
    let authorization = format!("Bearer {token}");
    let head = [("authorization", authorization.as_bytes())];
    let admitted = gate.admit(HeadView::new("POST", "/mcp", None, head)).await;
    let principal = admitted.map_err(|denied| {
        let mut message = format!("The token is not let in. {denied}");
        if let Some(cause) = &denied.cause {
            message.push_str(&format!(" {cause}"));
        }
        Failure::new(Reason::NotLetIn, Stage::Policy, message)
    })?;
    let (principal, bearer) = (&principal.principal, Bearer::of(&principal.principal));
    let (tags, rules) = (bearer.sees(auth), Rules::new(&plan.gateway.rules));
    let (mut servers, mut hidden) = (Vec::new(), Vec::new());
    for (name, server) in &plan.servers {
        let has_tag = |tags: &Vec<String>| server.tags.iter().any(|it| tags.contains(it));
        if !server.tags.is_empty() && tags.as_ref().is_some_and(|tags| !has_tag(tags)) {
            hidden.push((name.clone(), format!("it has the tags {}", server.tags.join(", "))));
        } else if !rules.may_allow(bearer.names(), &server.tags, name) {
            hidden.push((name.clone(), "a rule denies all of it".to_owned()));
        } else {
            servers.push(name.clone());
        }
    }
    let about = plan.gateway.rules.iter();
    let about = about.filter(|it| Globs::new(&it.principals).fit_one_of(bearer.names()));
    let names = bearer.names();
    Ok(Allowed {
        principal: names.first().cloned().unwrap_or_default(),
        also: names.iter().skip(1).cloned().collect(),
        scopes: principal.scopes.clone(),
        tags,
        servers,
        hidden,
        rules: about.map(words).collect(),
    })
}

/// A rule in words.
fn words(rule: &Rule) -> String {
    let effect = match rule.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
        Effect::Ask => "ask before",
    };
    let tools = match rule.tools.is_empty() {
        true => "everything".to_owned(),
        false => rule.tools.join(", "),
    };
    let on = match rule.tags.is_empty() {
        true => String::new(),
        false => format!(" on servers tagged {}", rule.tags.join(", ")),
    };
    format!("{effect} {tools}{on}")
}

//! A client's wish for authorization → a page that asks a person, and their decision → a code.

use std::time::{Duration, SystemTime};

use trunkline_auth::tag::random_name;
use trunkline_auth::url;

use crate::client::{Client, Grant};
use crate::desk::{Code, Desk, Wish};
use crate::fault::Fault;
use crate::fields::{Fields, words};
use crate::message::{Request, Response};
use crate::page;
use crate::redirect::Parts;

impl Desk {
    /// The authorization endpoint. The error is a response as well, but counts as a refusal.
    pub(crate) fn authorize(&mut self, request: &Request) -> Result<Response, Response> {
        self.stats.authorizations += 1;
        let unsafe_to_redirect =
            |fault: Fault| page::message(400, "This cannot go on", &fault.description);
        let fields = Fields::parse(request.query.as_bytes()).map_err(unsafe_to_redirect)?;
        let (client, redirect, said) =
            self.asker(&fields, request.now).map_err(unsafe_to_redirect)?;
        let state = fields.one("state").map_err(unsafe_to_redirect)?.map(str::to_owned);
        let wish = match self.wish(&fields, &client, redirect.clone(), said, state.clone()) {
            Ok(wish) => wish,
            Err(fault) => {
                let why = [("error", fault.error), ("error_description", &*fault.description)];
                return Err(self.back(&redirect, state.as_deref(), &why));
            }
        };
        match self.settings.approve_as.clone() {
            Some(user) => Ok(self.approve(wish, user, request.now)),
            None => self.ask(request, wish),
        }
    }

    /// What a person decided on the page.
    pub(crate) fn decide(&mut self, request: &Request) -> Result<Response, Response> {
        let forged = || {
            let why = "This page is too old, was answered before, or was not shown to this browser. \
                       Go back to the application and start again.";
            page::message(403, "This cannot go on", why)
        };
        let own = Parts::of(&self.issuer).map(|it| it.origin());
        if let Some(origin) = request.first("origin")
            && Parts::of(origin).is_none_or(|it| !self.is_own(it) && Some(it.origin()) != own)
        {
            return Err(forged());
        }
        let fields = Fields::parse(&request.body).map_err(|_| forged())?;
        let ticket = fields.one("ticket").ok().flatten().ok_or_else(forged)?;
        let session = self.session(request).ok_or_else(forged)?;
        match self.wishes.get(ticket, request.now) {
            Some((_, shown_to)) if *shown_to == session => {}
            _ => return Err(forged()),
        }
        let (mut wish, _) = self.wishes.take(ticket, request.now).ok_or_else(forged)?;
        let user = fields.one("user").ok().flatten().unwrap_or_default().to_owned();
        let is_approved = fields.one("decision").ok().flatten() == Some("approve");
        if !is_approved || !self.settings.users.contains(&user) {
            let why = [
                ("error", "access_denied"),
                ("error_description", "The person who was asked said no."),
            ];
            return Err(self.back(&wish.redirect, wish.state.as_deref(), &why));
        }
        wish.scopes.retain(|scope| fields.all("scope").any(|it| it == scope));
        Ok(self.approve(wish, user, request.now))
    }

    /// Who asks, and where the answer may go. As long as this is not clear, nobody is sent anywhere.
    fn asker(&self, fields: &Fields, now: SystemTime) -> Result<(Client, String, bool), Fault> {
        let id = fields.need("client_id")?;
        let client = self.client(id, now).ok_or_else(|| {
            Fault::request("The application is not known here. Start again from the application.")
        })?;
        let (redirect, said) = match (fields.one("redirect_uri")?, &*client.redirects) {
            (Some(uri), _) if client.may_redirect(uri) => (uri.to_owned(), true),
            (Some(_), _) => {
                let why = "The application asks to be answered at an address that it has not \
                           registered (`redirect_uri`).";
                return Err(Fault::request(why));
            }
            (None, [only]) => (only.clone(), false),
            (None, _) => return Err(Fault::request("`redirect_uri` is missing; send it.")),
        };
        Ok((client, redirect, said))
    }

    fn wish(
        &self,
        fields: &Fields,
        client: &Client,
        redirect: String,
        redirect_said: bool,
        state: Option<String>,
    ) -> Result<Wish, Fault> {
        if fields.need("response_type")? != "code" {
            let why = "`response_type` is not `code`, which is all there is here.";
            return Err(Fault::new("unsupported_response_type", why));
        }
        if !client.grants.contains(&Grant::Code) {
            let why = "The client did not register for `authorization_code`.";
            return Err(Fault::new("unauthorized_client", why));
        }
        if fields.one("request")?.is_some() || fields.one("request_uri")?.is_some() {
            return Err(Fault::new("request_not_supported", "Send the fields themselves."));
        }
        let challenge = fields.need("code_challenge")?;
        if fields.one("code_challenge_method")? != Some("S256") {
            return Err(Fault::request("`code_challenge_method` has to be `S256`."));
        }
        if challenge.len() != 43 || !challenge.bytes().all(is_base64url) {
            return Err(Fault::request("`code_challenge` is not the digest of a verifier."));
        }
        if fields.one("prompt")?.is_some_and(|it| words(it).iter().any(|it| it == "none"))
            && self.settings.approve_as.is_none()
        {
            return Err(Fault::new("login_required", "Somebody has to be asked."));
        }
        let scopes = self.allowed(client, fields.one("scope")?)?;
        let resource = self.resource(fields.all("resource").filter(|it| !it.is_empty()))?;
        Ok(Wish {
            client: client.id.clone(),
            name: client.name.clone(),
            redirect,
            redirect_said,
            state,
            challenge: challenge.to_owned(),
            scopes,
            resource,
            nonce: fields.one("nonce")?.map(str::to_owned),
            jkt: fields.one("dpop_jkt")?.map(str::to_owned),
        })
    }

    /// The scopes that a client asks for, if it may have them all.
    pub(crate) fn allowed(
        &self,
        client: &Client,
        asked: Option<&str>,
    ) -> Result<Vec<String>, Fault> {
        let scopes = words(asked.unwrap_or_default());
        for scope in &scopes {
            if !self.settings.scopes.contains(scope) {
                return Err(Fault::new(
                    "invalid_scope",
                    "The `scope` holds one that is not known here.",
                ));
            }
            if client.scopes.as_ref().is_some_and(|registered| !registered.contains(scope)) {
                let why = "The `scope` holds one that the client did not register for.";
                return Err(Fault::new("invalid_scope", why));
            }
        }
        Ok(scopes)
    }

    /// Shows the page, which works once and in this browser alone.
    fn ask(&mut self, request: &Request, wish: Wish) -> Result<Response, Response> {
        let (ticket, known) = (random_name(), self.session(request));
        let is_new = known.is_none();
        let session = known.unwrap_or_else(random_name);
        let mut response = page::consent(&page::Consent {
            action: &format!("{}/authorize/decision", self.root),
            ticket: &ticket,
            users: &self.settings.users,
            wish: &wish,
        });
        let stored =
            self.wishes.put(ticket, (wish, session.clone()), request.now + PATIENCE, request.now);
        if stored.is_err() {
            return Err(page::message(
                503,
                "Too busy",
                "Too many people are being asked; try later.",
            ));
        }
        if is_new {
            let (name, flags) = self.cookie();
            let cookie = format!("{name}={session}; Path=/; HttpOnly; SameSite=Lax{flags}");
            response = response.with("set-cookie", cookie);
        }
        Ok(response)
    }

    /// Gives out a code.
    fn approve(&mut self, wish: Wish, user: String, now: SystemTime) -> Response {
        let code = random_name();
        let (redirect, state) = (wish.redirect.clone(), wish.state.clone());
        let given = Code { wish, user, expires: now + GOOD, spent: None };
        // It is remembered for longer than it is good, to know it again.
        match self.codes.put(&*code, given, now + PATIENCE, now) {
            Ok(()) => {
                self.stats.codes += 1;
                self.back(&redirect, state.as_deref(), &[("code", &code)])
            }
            Err(_) => {
                let why = ("error_description", "Too many codes are open.");
                self.back(&redirect, state.as_deref(), &[("error", "temporarily_unavailable"), why])
            }
        }
    }

    /// Sends the browser back to the client. Every answer names who gives it (RFC 9207).
    fn back(&self, redirect: &str, state: Option<&str>, answer: &[(&str, &str)]) -> Response {
        let mut fields = answer.to_vec();
        fields.extend(state.map(|state| ("state", state)));
        fields.push(("iss", &self.issuer));
        let separator = if redirect.contains('?') { '&' } else { '?' };
        let location = format!("{redirect}{separator}{}", url::form(&fields));
        Response::new(303)
            .with("location", location)
            .with("referrer-policy", "no-referrer")
            .unkept()
    }

    fn session(&self, request: &Request) -> Option<String> {
        let (name, _) = self.cookie();
        let cookies = request.all("cookie").flat_map(|it| it.split(';'));
        let mut found = cookies.filter_map(|it| it.trim().strip_prefix(name)?.strip_prefix('='));
        found.next().filter(|it| it.len() == 32).map(str::to_owned)
    }

    /// The cookie's name and its last flags: where there is TLS, no neighbour can set it.
    fn cookie(&self) -> (&'static str, &'static str) {
        match self.issuer.starts_with("https:") {
            true => ("__Host-authority", "; Secure"),
            false => ("trunkline-authority", ""),
        }
    }

    /// On this machine the same server has three names.
    fn is_own(&self, origin: Parts<'_>) -> bool {
        let own = Parts::of(&self.issuer);
        own.is_some_and(|own| {
            own.is_loopback()
                && origin.is_loopback()
                && (own.scheme, own.port) == (origin.scheme, origin.port)
        })
    }
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// How long a code is good.
const GOOD: Duration = Duration::from_secs(60);
/// How long a page waits, and a code is remembered.
const PATIENCE: Duration = Duration::from_secs(600);

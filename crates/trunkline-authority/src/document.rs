//! Clients that are a URL: which document has to be fetched, and what it is worth.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::client::{Client, Proof};
use crate::desk::Desk;
use crate::fields::Fields;
use crate::message::Request;
use crate::redirect::Parts;

impl Desk {
    /// The document that a request needs and that is not here.
    pub(crate) fn wants(&self, request: &Request) -> Option<String> {
        if !self.settings.documents || !self.is_addressed(request) {
            return None;
        }
        let path = request.path.strip_prefix(&*self.root)?;
        let fields = match path {
            "/authorize" => request.query.as_bytes(),
            "/token" | "/revoke" => &request.body,
            _ => return None,
        };
        let fields = Fields::parse(fields).ok()?;
        let url = fields.one("client_id").ok()??;
        let is_known =
            self.client(url, request.now).is_some() || self.clients.get(url, request.now).is_some();
        (self.is_document(url) && !is_known).then(|| url.to_owned())
    }

    /// Remembers what was found, for a while; also that nothing was, for a shorter one.
    pub(crate) fn learn(&mut self, url: &str, found: Option<&[u8]>, now: SystemTime) {
        if !self.settings.documents || !self.is_document(url) {
            return;
        }
        let client = found.and_then(|found| self.described(url, found));
        let kept = if client.is_some() { KEPT } else { MISSED };
        // Where there is no room for it, the client stays unknown, and hears that.
        drop(self.clients.put(url, client, now + kept, now));
    }

    fn described(&self, url: &str, found: &[u8]) -> Option<Client> {
        if found.len() > LARGEST {
            return None;
        }
        let document: Value = serde_json::from_slice(found).ok()?;
        let is_own = document.get("client_id").and_then(Value::as_str) == Some(url);
        let has_secret = document.get("client_secret").is_some()
            || document.get("client_secret_expires_at").is_some();
        let client = self.client_of(url, &document, "none").ok()?;
        // What anybody can read is no secret.
        let is_honest = is_own && !has_secret && !matches!(client.proof, Proof::Secret { .. });
        is_honest.then_some(client)
    }

    /// Whether a client id is the URL of a document: `https` with a path that is as plain as it
    /// looks. A server on this machine also takes documents of this machine.
    fn is_document(&self, id: &str) -> bool {
        let Some(parts) = Parts::of(id) else { return false };
        let is_here = parts.scheme == "http"
            && parts.is_loopback()
            && Parts::of(&self.issuer).is_some_and(|own| own.is_loopback());
        let path = parts.rest.split('?').next().unwrap_or_default();
        let is_plain = path.len() > 1 && path.split('/').all(|it| !matches!(it, "." | ".."));
        (parts.scheme == "https" || is_here) && !parts.host.is_empty() && is_plain
    }
}

const KEPT: Duration = Duration::from_secs(300);
const MISSED: Duration = Duration::from_secs(10);
const LARGEST: usize = 8 * 1024;

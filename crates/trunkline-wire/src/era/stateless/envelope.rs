//! The envelope: what every request of 2026-07-28 says about itself in `_meta`.

use crate::era::stateful::{Fit, take_token};
use crate::json::Json;
use crate::jsonrpc::{Id, Object};
use crate::model::meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, MetaFault, PROGRESS_TOKEN, PROTOCOL_VERSION,
};
use crate::model::{ClientCapabilities, Implementation, LogLevel};
use crate::revision::Revision;

/// The parsed `_meta` of a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The revision, as text because it may be unknown.
    pub protocol_version: String,
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// The client's name and version, if given.
    pub client_info: Option<Implementation>,
    /// The least severe log message wanted about this request; none if absent.
    pub log_level: Option<LogLevel>,
    /// Asks for progress notifications.
    pub progress_token: Option<Id>,
    /// Everything else, trace context included.
    pub rest: Object,
}

impl Envelope {
    /// An envelope for `revision`.
    pub fn new(revision: Revision, capabilities: ClientCapabilities) -> Self {
        Self {
            protocol_version: revision.as_str().to_owned(),
            capabilities,
            client_info: None,
            log_level: None,
            progress_token: None,
            rest: Object::default(),
        }
    }

    /// The revision, if it is known.
    pub fn revision(&self) -> Option<Revision> {
        Revision::parse(&self.protocol_version)
    }

    /// The revision that `params._meta` names, whether or not the rest is valid.
    pub fn peek(meta: Option<&Json>) -> Option<String> {
        Object::parse(meta?.get()).ok()?.get(PROTOCOL_VERSION)?.to().ok()
    }

    /// Reads `params._meta`.
    pub fn read(meta: Option<&Json>) -> Result<Self, MetaFault> {
        let meta = meta.ok_or(MetaFault::Missing(PROTOCOL_VERSION))?;
        let mut rest = Object::parse(meta.get()).map_err(|_| MetaFault::of(meta))?;
        Ok(Self {
            protocol_version: take(&mut rest, PROTOCOL_VERSION)?
                .ok_or(MetaFault::Missing(PROTOCOL_VERSION))?,
            capabilities: take_object(&mut rest, CLIENT_CAPABILITIES)?
                .ok_or(MetaFault::Missing(CLIENT_CAPABILITIES))?,
            client_info: take_object(&mut rest, CLIENT_INFO)?,
            log_level: take(&mut rest, LOG_LEVEL)?,
            progress_token: take_token(&mut rest)?,
            rest,
        })
    }

    /// The `_meta` to send.
    pub fn to_json(&self) -> Json {
        let mut meta = Object::default();
        meta.set(PROTOCOL_VERSION, Json::string(&self.protocol_version));
        if let Some(client_info) = &self.client_info {
            meta.set(CLIENT_INFO, Json::of(client_info));
        }
        let mut capabilities = self.capabilities.clone();
        capabilities.fit(Revision::LATEST.profile());
        meta.set(CLIENT_CAPABILITIES, Json::of(&capabilities));
        if let Some(level) = self.log_level {
            meta.set(LOG_LEVEL, Json::of(&level));
        }
        if let Some(token) = &self.progress_token {
            meta.set(PROGRESS_TOKEN, token.to_json());
        }
        for (name, value) in self.rest.iter() {
            meta.set(name.to_owned(), value.clone());
        }
        meta.to_json()
    }
}

/// Derived deserialisers accept arrays for structs; these must be objects.
fn take_object<T: serde::de::DeserializeOwned>(
    meta: &mut Object,
    name: &'static str,
) -> Result<Option<T>, MetaFault> {
    match meta.get(name) {
        Some(raw) if !raw.is_object() => Err(MetaFault::Wrong(name)),
        _ => take(meta, name),
    }
}

fn take<T: serde::de::DeserializeOwned>(
    meta: &mut Object,
    name: &'static str,
) -> Result<Option<T>, MetaFault> {
    meta.take(name).map(|raw| raw.to().map_err(|_| MetaFault::Wrong(name))).transpose()
}

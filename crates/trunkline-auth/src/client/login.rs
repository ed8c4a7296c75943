//! A login without its secrets, and the steps to one.

use std::time::SystemTime;

/// A login, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The server, by its URL.
    pub server: String,
    /// The issuer of its tokens.
    pub issuer: String,
    /// The resource that it is valid for.
    pub resource: String,
    /// The client's identifier at the issuer.
    pub client_id: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The subject, if the token names one. For display only: it is not verified.
    pub subject: Option<String>,
    /// When the access token expires, if that is known.
    pub expires: Option<SystemTime>,
    /// Whether it is refreshed after that.
    pub renews: bool,
    /// Whether its tokens are bound to a key that only this vault has (DPoP).
    pub is_bound: bool,
}

/// A step of a login, for people who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Discovering the authorization server of this server.
    Discovering(String),
    /// Using the stored registration at this issuer.
    Reusing(String),
    /// Replacing the stored registration at this issuer.
    Reregistering(String, Reregistration),
    /// Registering with this issuer.
    Registering(String),
    /// Waiting for a person to log in at this issuer.
    Waiting(String),
    /// Requesting a token from this issuer.
    Exchanging(String),
    /// Logged in at this issuer.
    Done(String),
}

/// Why a stored registration is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reregistration {
    /// The page of the last login with it never redirected.
    Unanswered,
    /// The authorization server says that it has no such client.
    Forgotten,
    /// The set-up asks for a new one: [`OAuth::register_anew`](super::OAuth::register_anew).
    Requested,
}

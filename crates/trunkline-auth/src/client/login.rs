//! A login as it can be shown, and the steps to one.

use std::time::SystemTime;

/// A login, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The server, by its URL.
    pub server: String,
    /// Who gave it.
    pub issuer: String,
    /// What it is good for.
    pub resource: String,
    /// The client, as the issuer knows it.
    pub client_id: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// Who is logged in, if the token says so. For display: nobody checked it.
    pub subject: Option<String>,
    /// When the access token ends, if that is known.
    pub expires: Option<SystemTime>,
    /// Whether it goes on after that by itself.
    pub renews: bool,
    /// Whether its tokens are bound to a key that only this vault has (DPoP).
    pub is_bound: bool,
}

/// What is being done, for people who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Looking for the authorization server of this server.
    Discovering(String),
    /// Using the registration that is kept for this issuer.
    Reusing(String),
    /// The registration that is kept for this issuer is not used: a new one replaces it.
    Reregistering(String, Reregistration),
    /// Registering with this issuer.
    Registering(String),
    /// A person is asked to log in at this issuer.
    Waiting(String),
    /// Asking this issuer for a token.
    Exchanging(String),
    /// Logged in at this issuer.
    Done(String),
}

/// Why a registration that is kept is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reregistration {
    /// The page of the last login with it led nowhere.
    Unanswered,
    /// The authorization server says that it has no such client.
    Forgotten,
    /// The set-up asks for a new one: [`OAuth::register_anew`](super::OAuth::register_anew).
    Requested,
}

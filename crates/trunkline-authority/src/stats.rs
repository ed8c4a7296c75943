//! What has happened so far, counted.

/// What has happened so far: for tests, which ask how often a client did something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests of every kind.
    pub requests: u64,
    /// Clients that registered themselves.
    pub registrations: u64,
    /// Requests to the authorization endpoint.
    pub authorizations: u64,
    /// Codes given out.
    pub codes: u64,
    /// Requests to the token endpoint.
    pub token_requests: u64,
    /// Access tokens given out.
    pub tokens: u64,
    /// Refresh tokens spent, each once.
    pub refreshes: u64,
    /// Refresh tokens spent again within the time of grace.
    pub graces: u64,
    /// Codes and refresh tokens spent again when that was no longer allowed: each ended a login.
    pub reuses: u64,
    /// Tokens that resource servers asked about.
    pub introspections: u64,
    /// Tokens that clients gave back.
    pub revocations: u64,
    /// Requests answered with an error of OAuth.
    pub refusals: u64,
}

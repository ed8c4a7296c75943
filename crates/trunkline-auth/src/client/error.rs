//! Why a login failed, and whose fault it is.

use std::fmt;

use super::vault::VaultError;
use crate::fetch::FetchError;

/// Why a login failed. Each displays as sentences that say what to do next, and never contains a
/// token, code or secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// A server did not answer, or not as it must. A later retry may help.
    Unreachable(String),
    /// A server named an address that may not be reached from here. Nothing was sent.
    Forbidden(String),
    /// A rule that protects the user was broken: by the server, the authorization server, or an
    /// attacker between. Nothing secret was sent.
    Untrusted(String),
    /// The authorization server or its user refused.
    Rejected {
        /// Such as `access_denied`.
        code: String,
        /// The whole sentence.
        why: String,
    },
    /// The authorization server does not know this client and supports no registration.
    Unregistered(String),
    /// The server offers no login: it names no authorization server, and is none. It takes tokens
    /// that were given out in another way.
    NotOffered(String),
    /// A person has to log in, and may not be asked now.
    NeedsLogin(String),
    /// Logins cannot be read or stored.
    Vault(String),
    /// The set-up is incomplete or wrong.
    Setup(String),
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why)
            | Self::Forbidden(why)
            | Self::Untrusted(why)
            | Self::Rejected { why, .. }
            | Self::Unregistered(why)
            | Self::NotOffered(why)
            | Self::NeedsLogin(why)
            | Self::Vault(why)
            | Self::Setup(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for AuthError {}

impl From<FetchError> for AuthError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Forbidden(why) => Self::Forbidden(why),
            FetchError::Failed(why) => Self::Unreachable(why),
        }
    }
}

impl From<VaultError> for AuthError {
    fn from(VaultError(why): VaultError) -> Self {
        Self::Vault(why)
    }
}

impl AuthError {
    /// Whether the authorization server answered with this code.
    pub(super) fn is(&self, says: &str) -> bool {
        matches!(self, Self::Rejected { code, .. } if code == says)
    }

    /// An error response of an authorization server.
    pub(super) fn rejected(issuer: &str, code: &str, description: Option<&str>) -> Self {
        let code = said(code);
        let hint = match &*code {
            "access_denied" => " Access was not granted; log in again to try once more.",
            "invalid_scope" => " Ask for other scopes.",
            "invalid_client" | "unauthorized_client" => {
                " Check the client's credentials, or log out and in again to register anew."
            }
            "invalid_grant" => " Log in again.",
            "temporarily_unavailable" | "server_error" => " Try again later.",
            _ => "",
        };
        let words = description.map(said).filter(|it| !it.is_empty());
        let words = words.map_or_else(String::new, |it| format!(": “{it}”"));
        let issuer = crate::url::shown(issuer);
        Self::Rejected { why: format!("`{issuer}` answers `{code}`{words}.{hint}"), code }
    }
}

/// A foreign text as it can be shown: one line, not too long.
pub(super) fn said(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(200).collect()
}

//! What can go wrong on the way in, and whose fault it is.

use std::fmt;

use super::vault::VaultError;
use crate::fetch::FetchError;

/// Why nobody was let in. Displayed, each is sentences that say what to do next; no token, code or
/// secret is ever part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// Somebody did not answer, or not with what is owed. Trying again later may help.
    Unreachable(String),
    /// An address was named that may not be reached from here. Nobody was called.
    Forbidden(String),
    /// A rule that protects the user was broken: by the server, the authorization server, or
    /// somebody between. Nothing secret was sent.
    Untrusted(String),
    /// The authorization server, or the person there, said no.
    Rejected {
        /// Such as `access_denied`.
        code: String,
        /// The whole sentence.
        why: String,
    },
    /// The authorization server does not know this client and offers no way to become known.
    Unregistered(String),
    /// A person has to log in, and nobody may be asked now.
    NeedsLogin(String),
    /// Logins cannot be read or kept.
    Vault(String),
    /// The set-up lacks something, or is wrong.
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
    /// Whether this is what the authorization server said.
    pub(super) fn is(&self, says: &str) -> bool {
        matches!(self, Self::Rejected { code, .. } if code == says)
    }

    /// An error as an authorization server words it.
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

/// What somebody else wrote, as it can be shown: one line, not too long.
pub(super) fn said(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(200).collect()
}

//! The options of the last login to a server → an `OAuth` login.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline::auth::address::{Guard, Reach};
use trunkline::auth::jose::{Algorithm, SigningKey};
use trunkline::auth::vault::Vault;
use trunkline::auth::{ClientAuth, Grant, HttpFetch, OAuth};

use crate::failure::Failure;
use crate::interrupt::outlast;

/// The options of the last login, without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Profile {
    server: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) redirect_uri: Option<String>,
    pub(crate) dpop: bool,
    /// Whether tokens are never bound, even if the server offers it.
    pub(crate) no_dpop: bool,
    /// Whether the client acts for itself.
    pub(crate) is_machine: bool,
    /// The client's own key. Only its path is stored.
    pub(crate) private_key: Option<PathBuf>,
    pub(crate) alg: Option<String>,
    pub(crate) key_id: Option<String>,
    pub(crate) allow_private_network: bool,
    pub(crate) cacert: Vec<PathBuf>,
    pub(crate) keyring: bool,
}

impl Profile {
    /// A login with default options.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), ..Self::default() }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Whether logins of the two are stored in different places.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        let place =
            |it: &Self| (it.server.clone(), it.client_id.clone(), it.is_machine, it.keyring);
        place(self) != place(other)
    }

    /// The login, stored in `vault`.
    pub(crate) fn way_in(
        &self,
        vault: Arc<dyn Vault>,
        secret: Option<String>,
    ) -> Result<OAuth, Failure> {
        let mut guard = Guard::for_server(&self.server);
        if self.allow_private_network {
            guard = guard.allow(Reach::Local);
        }
        let mut fetch = HttpFetch::new(guard);
        for pem in self.certificates()? {
            fetch = fetch.root_certificate(pem);
        }
        let oauth = OAuth::new(&self.server);
        outlast(oauth.settled());
        let mut oauth = oauth
            .fetch(Arc::new(fetch))
            .vault(vault)
            .client_name("trunkline")
            .scopes(&self.scopes)
            .redirect_uris(&self.redirect_uri);
        if self.dpop || self.no_dpop {
            oauth = oauth.dpop(self.dpop);
        }
        if let Some(issuer) = &self.issuer {
            oauth = oauth.for_issuer(issuer);
        }
        if let Some(url) = &self.client_metadata_url {
            oauth = oauth.client_metadata_url(url);
        }
        let Some(id) = &self.client_id else { return Ok(oauth) };
        if self.is_machine {
            let client = match (&self.private_key, secret) {
                (Some(_), _) => ClientAuth::private_key(id, self.key()?),
                (None, Some(secret)) => ClientAuth::secret(id, secret),
                (None, None) => ClientAuth::public(id),
            };
            return Ok(oauth.grant(Grant::ClientCredentials(client)));
        }
        oauth = oauth.client_id(id);
        Ok(match secret {
            Some(secret) => oauth.client_secret(secret),
            None => oauth,
        })
    }

    /// The root certificates that this login trusts in addition.
    pub(crate) fn certificates(&self) -> Result<Vec<Vec<u8>>, Failure> {
        self.cacert.iter().map(certificate).collect()
    }

    fn key(&self) -> Result<SigningKey, Failure> {
        let path = self.private_key.as_ref().expect("it was looked at");
        let shown = path.display();
        let pem = fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("The key `{shown}` cannot be read: {error}."))
                .advice("Give `--private-key` the path of a PEM file.")
        })?;
        let algorithms = match self.alg.as_deref().map(Algorithm::parse) {
            Some(Some(algorithm)) => vec![algorithm],
            Some(None) => return Err(Failure::usage("The algorithm of the key is unknown.")),
            None => USUAL.to_vec(),
        };
        let mut why = None;
        for algorithm in algorithms {
            match SigningKey::from_pem(&pem, algorithm) {
                Ok(key) => {
                    return Ok(match &self.key_id {
                        Some(id) => key.named(id),
                        None => key,
                    });
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        let why = why.map(|it| it.to_string()).unwrap_or_default();
        Err(Failure::usage(format!("`{shown}` holds no key that can be used: {why}")).advice(
            "Give a PKCS #8 file (`BEGIN PRIVATE KEY`), and `--alg` if it is not the usual.",
        ))
    }
}

/// A file of certificates.
pub(crate) fn certificate(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| {
        let file = file.display();
        Failure::usage(format!("The certificate `{file}` cannot be read: {error}."))
            .advice("Give `--cacert` the path of a PEM file.")
    })
}

/// The default algorithms of a key: the first that it supports.
const USUAL: [Algorithm; 4] =
    [Algorithm::ES256, Algorithm::RS256, Algorithm::EdDSA, Algorithm::ES384];

//! A refused request → the authorization server, and what to request there.

use super::error::{AuthError, said};
use super::login::Step;
use super::oauth::OAuth;
use crate::address::{Guard, Reach};
use crate::challenge;
use crate::fetch::{Answer, Ask, FetchError};
use crate::issuer;
use crate::metadata::{self, AuthorizationServer, ProtectedResource};
use crate::scope::Scopes;
use crate::url::{Origin, shown};

/// The content of a challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// The URL of the server's metadata.
    pub(super) metadata_url: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Option<Scopes>,
    /// `error`, if it is there.
    pub(super) error: Option<String>,
    /// `error_description`, for people.
    pub(super) description: Option<String>,
    pub(super) dpop: Dpop,
}

/// Whether the resource wants DPoP-bound tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dpop {
    #[default]
    Unsaid,
    Offered,
    Required,
}

impl Demand {
    pub(super) fn read(challenges: &[String]) -> Self {
        let mut demand = Self::default();
        let mut takes_bearer = false;
        for challenge in challenge::parse(challenges) {
            if challenge.is("DPoP") {
                demand.dpop = Dpop::Required;
            } else if challenge.is("Bearer") {
                takes_bearer = true;
            } else {
                continue;
            }
            let param = |name| challenge.param(name).map(str::to_owned);
            demand.metadata_url = demand.metadata_url.or_else(|| param("resource_metadata"));
            if demand.error.is_none() {
                (demand.error, demand.description) = (param("error"), param("error_description"));
            }
            demand.scopes = demand.scopes.or_else(|| param("scope").map(|it| Scopes::parse(&it)));
        }
        if takes_bearer && demand.dpop == Dpop::Required {
            demand.dpop = Dpop::Offered;
        }
        demand
    }
}

/// The authorization server, and what to request there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The issuer, recorded before anything is sent there.
    pub(super) issuer: String,
    /// The resource indicator of the token (RFC 8707), byte for byte.
    pub(super) resource: String,
    pub(super) server: AuthorizationServer,
    /// Whether nothing was found, and the endpoints are the defaults of 2025-03-26.
    pub(super) is_assumed: bool,
    /// The scopes in the server's metadata.
    pub(super) scopes: Scopes,
    pub(super) dpop: Dpop,
}

impl Place {
    /// An endpoint that may be used: https, or on this machine.
    pub(super) fn endpoint<'a>(
        &self,
        url: Option<&'a String>,
        name: &str,
    ) -> Result<&'a str, AuthError> {
        let issuer = shown(&self.issuer);
        let Some(url) = url else {
            return Err(AuthError::Unreachable(format!(
                "`{issuer}` does not say where its {name} is; it cannot be used to log in."
            )));
        };
        is_endpoint(url)
            .then_some(&**url)
            .ok_or_else(|| insecure(&format!("the {name} of `{issuer}`"), url))
    }
}

/// Whether secrets may be sent there.
pub(super) fn is_endpoint(url: &str) -> bool {
    !url.contains('#') && Origin::of(url).is_some_and(|it| it.is_private())
}

pub(super) fn insecure(what: &str, url: &str) -> AuthError {
    AuthError::Untrusted(format!(
        "{} is at `{}`, which is neither https nor on this machine. Nothing was sent there.",
        capital(what),
        said(&shown(url)),
    ))
}

impl OAuth {
    /// Discovers the authorization server.
    pub(super) async fn discover(&self, demand: &Demand) -> Result<Place, AuthError> {
        let Some(home) = Origin::of(&self.server) else {
            let url = said(&shown(&self.server));
            return Err(AuthError::Setup(format!("`{url}` is no http or https URL of a server.")));
        };
        if !self.is_safe() {
            return Err(self.unsafe_server());
        }
        self.step(Step::Discovering(shown(&self.server)));
        let document = self.protected_resource(demand, &home).await?;
        let Some(document) = document.filter(|it| !it.authorization_servers.is_empty()) else {
            return self.at_home(demand).await;
        };
        let server = self.authorization_server(&document.authorization_servers).await?;
        let dpop = match demand.dpop {
            Dpop::Unsaid if document.dpop_bound_access_tokens_required => Dpop::Required,
            Dpop::Unsaid if lists(&document.dpop_signing_alg_values_supported) => Dpop::Offered,
            said => said,
        };
        let scopes = document.scopes_supported.into_iter().collect();
        let issuer = server.issuer.clone();
        let resource = document.resource;
        Ok(Place { issuer, resource, server, is_assumed: false, scopes, dpop })
    }

    /// Whether tokens may be sent to the server.
    pub(super) fn is_safe(&self) -> bool {
        self.allows_insecure
            || Origin::of(&self.server).is_some_and(|it| it.is_private())
            || Guard::for_server(&self.server) != Guard::new(Reach::Public)
    }

    pub(super) fn unsafe_server(&self) -> AuthError {
        AuthError::Untrusted(format!(
            "`{}` is reached over `http`, where whoever is between could read the token and use it. \
             Nobody was asked to log in; use its `https` URL, or allow tokens over `http` in the \
             set-up.",
            said(&shown(&self.server))
        ))
    }

    /// The server's protected resource metadata (RFC 9728); `None` if it has none.
    async fn protected_resource(
        &self,
        demand: &Demand,
        home: &Origin,
    ) -> Result<Option<ProtectedResource>, AuthError> {
        let (mut silence, mut nonsense) = (None, None);
        let own = metadata::protected_resource_url(&canonical(&self.server));
        for url in places(demand.metadata_url.as_deref(), &self.server) {
            if Origin::of(&url).is_none_or(|it| !it.is_private() && it != *home) {
                return Err(insecure("the document that says who protects the server", &url));
            }
            let answer = match self.document(&url).await {
                Ok(Some(answer)) => answer,
                Ok(None) => continue,
                Err(forbidden @ AuthError::Forbidden(_)) => return Err(forbidden),
                Err(error) => {
                    silence = silence.or(Some(error));
                    continue;
                }
            };
            match ProtectedResource::parse(&answer.body) {
                Ok(document) => {
                    let is_said = demand.metadata_url.as_ref() == Some(&url);
                    let speaks = if !is_said && own.as_ref() == Some(&url) {
                        issuer::is_resource_at
                    } else {
                        issuer::is_resource_of
                    };
                    if speaks(&document.resource, &self.server) {
                        return Ok(Some(document));
                    }
                    return Err(self.mismatch(&document.resource));
                }
                Err(why) => nonsense = nonsense.or(Some(unreadable(&url, &why.to_string()))),
            }
        }
        // Some servers answer every path with a page: that counts as no metadata, unless the
        // challenge named it.
        let nonsense = nonsense.filter(|_| demand.metadata_url.is_some());
        silence.or(nonsense).map_or(Ok(None), Err)
    }

    fn mismatch(&self, resource: &str) -> AuthError {
        let (resource, server) = (said(&shown(resource)), shown(&self.server));
        AuthError::Untrusted(format!(
            "`{server}` wants tokens for `{resource}`, which is not itself. Nobody was asked to log \
             in; the operator of the server has to correct `resource` in its metadata."
        ))
    }

    /// The metadata of the first issuer that has any.
    async fn authorization_server(
        &self,
        issuers: &[String],
    ) -> Result<AuthorizationServer, AuthError> {
        let mut trouble = None;
        for issuer in self.eligible(issuers)?.into_iter().take(MAX_ISSUERS) {
            match self.issuer_document(issuer).await {
                Ok(server) => return Ok(server),
                Err(forbidden @ AuthError::Forbidden(_)) => return Err(forbidden),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        Err(trouble.expect("a list that is not empty has a first issuer"))
    }

    /// The issuers that may get the client's credentials.
    fn eligible<'a>(&self, issuers: &'a [String]) -> Result<Vec<&'a String>, AuthError> {
        let Some(ours) = &self.issuer else { return Ok(issuers.iter().collect()) };
        let same: Vec<_> = issuers.iter().filter(|it| *it == ours).collect();
        if same.is_empty() {
            return Err(self.moved(ours, &issuers[0]));
        }
        Ok(same)
    }

    /// The credentials belong to another authorization server.
    pub(super) fn moved(&self, ours: &str, theirs: &str) -> AuthError {
        AuthError::Untrusted(format!(
            "The client's credentials are those of `{}`, but `{}` now names `{}`. They were not \
             sent there: register the client with it, and set its new credentials and issuer.",
            shown(ours),
            shown(&self.server),
            said(&shown(theirs)),
        ))
    }

    /// The metadata of this issuer.
    pub(super) async fn issuer_document(
        &self,
        issuer: &str,
    ) -> Result<AuthorizationServer, AuthError> {
        if !is_endpoint(issuer) {
            return Err(insecure("the authorization server", issuer));
        }
        let found =
            self.first_document(issuer, |says| issuer::is_document_of(issuer, says)).await?;
        found.ok_or_else(|| {
            AuthError::Unreachable(format!(
                "`{}` has no metadata that says how to log in there.",
                shown(issuer)
            ))
        })
    }

    /// The first metadata of an issuer that names this issuer.
    async fn first_document(
        &self,
        issuer: &str,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Option<AuthorizationServer>, AuthError> {
        let mut trouble = None;
        for url in metadata::authorization_server_urls(issuer) {
            let error = match self.document(&url).await {
                Ok(Some(answer)) => match AuthorizationServer::parse(&answer.body) {
                    Ok(server) if is_own(&server.issuer) => return Ok(Some(server)),
                    Ok(server) => AuthError::Untrusted(format!(
                        "The metadata at `{}` is that of `{}`, not of `{}`. It was not used.",
                        shown(&url),
                        said(&server.issuer),
                        said(issuer),
                    )),
                    // Some servers answer every path with a page.
                    Err(_) => continue,
                },
                Ok(None) => continue,
                Err(forbidden @ AuthError::Forbidden(_)) => return Err(forbidden),
                Err(error) => error,
            };
            trouble = trouble.or(Some(error));
        }
        trouble.map_or(Ok(None), Err)
    }

    /// The server is its own authorization server, as in 2025-03-26: its metadata is at the root of
    /// its host, and without any the endpoints have default paths.
    async fn at_home(&self, demand: &Demand) -> Result<Place, AuthError> {
        let (origin, _) = metadata::split(&self.server).expect("a URL with an origin has a host");
        let found =
            self.first_document(origin, |says| issuer::is_document_at(origin, says)).await?;
        let is_assumed = found.is_none();
        let server = found.unwrap_or_else(|| {
            let mut server = AuthorizationServer::new(origin);
            server.authorization_endpoint = Some(format!("{origin}/authorize"));
            server.token_endpoint = Some(format!("{origin}/token"));
            server.registration_endpoint = Some(format!("{origin}/register"));
            // That revision requires PKCE of all.
            server.code_challenge_methods_supported = vec!["S256".to_owned()];
            server
        });
        if self.issuer.as_ref().is_some_and(|ours| *ours != server.issuer) {
            return Err(self.moved(self.issuer.as_deref().unwrap_or_default(), &server.issuer));
        }
        let issuer = server.issuer.clone();
        let (resource, scopes) = (canonical(&self.server), Scopes::default());
        Ok(Place { issuer, resource, server, is_assumed, scopes, dpop: demand.dpop })
    }

    /// The response at `url`; `None` if there is nothing.
    async fn document(&self, url: &str) -> Result<Option<Answer>, AuthError> {
        let ask = Ask::get(url).header("mcp-protocol-version", REVISION);
        let answer = self.fetcher()?.fetch(ask).await.map_err(|error| match error {
            FetchError::Failed(why) => {
                AuthError::Unreachable(format!("`{}` cannot be reached: {why}", shown(url)))
            }
            forbidden => forbidden.into(),
        })?;
        match answer.status {
            200..=299 => Ok(Some(answer)),
            500.. => Err(AuthError::Unreachable(format!(
                "`{}` answers with {}. Try again later.",
                shown(url),
                answer.status
            ))),
            _ => Ok(None),
        }
    }
}

fn unreadable(url: &str, why: &str) -> AuthError {
    AuthError::Unreachable(format!(
        "What is at `{}` does not say who protects the server: {}.",
        shown(url),
        said(why)
    ))
}

/// The possible URLs of a server's metadata, in order: the one it names, under its path, at its
/// root.
fn places(said: Option<&str>, server: &str) -> Vec<String> {
    let mut urls: Vec<_> = said.map(str::to_owned).into_iter().collect();
    let root =
        metadata::split(server).map(|(it, _)| format!("{it}{}", metadata::PROTECTED_RESOURCE));
    for url in [metadata::protected_resource_url(&canonical(server)), root].into_iter().flatten() {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// A server's URL as its own identifier: without the query, which may contain a secret, and without
/// a lone slash.
fn canonical(server: &str) -> String {
    let url = &server[..server.find(['?', '#']).unwrap_or(server.len())];
    let Some((origin, path)) = metadata::split(url) else { return url.to_owned() };
    format!("{}{}", origin.to_ascii_lowercase(), if path == "/" { "" } else { path })
}

/// Whether they include the algorithm of our proofs.
pub(super) fn lists(algorithms: &[String]) -> bool {
    algorithms.iter().any(|it| it == "ES256")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |it| it.to_uppercase().chain(chars).collect())
}

/// How many issuers are tried.
const MAX_ISSUERS: usize = 4;
/// The newest revision we support: old servers answer by it (2025-03-26).
const REVISION: &str = "2026-07-28";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_they_want() {
        let scopes = |text| Some(Scopes::parse(text));
        let text = |it: &str| Some(it.to_owned());
        for (lines, expected) in [
            (&[][..], Demand::default()),
            (&["Basic realm=x, scope=y"], Demand::default()),
            (
                &[r#"Bearer error="invalid_token", resource_metadata="https://a.example/m""#],
                Demand {
                    error: text("invalid_token"),
                    metadata_url: text("https://a.example/m"),
                    ..Demand::default()
                },
            ),
            (
                &[r#"Bearer scope="a b""#, r#"Bearer scope="c", error="x""#],
                Demand { scopes: scopes("a b"), error: text("x"), ..Demand::default() },
            ),
            (&["DPoP algs=ES256"], Demand { dpop: Dpop::Required, ..Demand::default() }),
            (&["DPoP algs=ES256, Bearer"], Demand { dpop: Dpop::Offered, ..Demand::default() }),
            (&["Bearer", "dpop"], Demand { dpop: Dpop::Offered, ..Demand::default() }),
        ] {
            let lines: Vec<_> = lines.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(Demand::read(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn documents_are_looked_for_in_order() {
        let root = "https://a.example/.well-known/oauth-protected-resource";
        let path = format!("{root}/x/mcp");
        assert_eq!(places(None, "https://a.example/x/mcp?key=1"), [&path, root]);
        assert_eq!(places(None, "https://a.example/"), [root]);
        assert_eq!(places(None, "https://a.example"), [root]);
        let said = "https://b.example/m";
        assert_eq!(places(Some(said), "https://a.example/x/mcp"), [said, &path, root]);
        assert_eq!(places(Some(&path), "https://a.example/x/mcp"), [&path, root]);
    }

    #[test]
    fn a_server_is_its_own_identifier() {
        for (server, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("HTTPS://A.Example/MCP", "https://a.example/MCP"),
            ("https://a.example/", "https://a.example"),
            ("https://a.example", "https://a.example"),
            ("https://a.example/mcp/", "https://a.example/mcp/"),
            ("https://a.example/mcp?key=secret#x", "https://a.example/mcp"),
            ("https://a.example?key=secret", "https://a.example"),
        ] {
            assert_eq!(canonical(server), expected);
        }
    }
}

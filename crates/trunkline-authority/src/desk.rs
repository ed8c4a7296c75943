//! What is remembered between two requests: wishes, codes, logins, tokens, and the keys that sign.

use std::time::{Duration, SystemTime};

use trunkline_auth::dpop::Checker;
use trunkline_auth::jose::SigningKey;
use trunkline_auth::tag::{Tagger, random_name};

use crate::client::Client;
use crate::message::Request;
use crate::redirect::Parts;
use crate::settings::Settings;
use crate::shelf::Shelf;
use crate::stats::Stats;

/// What is remembered.
pub(crate) struct Desk {
    pub(crate) issuer: String,
    /// Where the endpoints begin: the path of the issuer.
    pub(crate) root: String,
    pub(crate) settings: Settings,
    pub(crate) stats: Stats,
    /// The first signs.
    pub(crate) signing: Vec<SigningKey>,
    pub(crate) checker: Checker,
    pub(crate) nonces: Tagger,
    /// Clients that registered, and `None` for URLs where nothing usable was found.
    pub(crate) clients: Shelf<Option<Client>>,
    /// Consent pages that are open, by their ticket, with the browser's session.
    pub(crate) wishes: Shelf<(Wish, String)>,
    pub(crate) codes: Shelf<Code>,
    /// What came of one authorization. A login ends by being taken off this shelf.
    pub(crate) families: Shelf<Family>,
    pub(crate) tokens: Shelf<Token>,
    /// Assertions that were used.
    pub(crate) used: Shelf<()>,
}

impl Desk {
    pub(crate) fn new(issuer: String, settings: Settings) -> Self {
        let root = Parts::of(&issuer).map(|it| it.rest.trim_end_matches('/').to_owned());
        let mut desk = Self {
            root: root.unwrap_or_default(),
            issuer,
            settings,
            stats: Stats::default(),
            signing: Vec::new(),
            checker: Checker::new(Duration::from_secs(60)),
            nonces: Tagger::random(),
            clients: Shelf::new(10_000),
            wishes: Shelf::new(10_000),
            codes: Shelf::new(10_000),
            families: Shelf::new(100_000),
            tokens: Shelf::new(100_000),
            used: Shelf::new(100_000),
        };
        desk.rotate();
        desk
    }

    pub(crate) fn rotate(&mut self) {
        self.signing.insert(0, SigningKey::generate().named(random_name()));
        self.signing.truncate(8);
    }

    /// An endpoint as clients are told it.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        format!("{}{endpoint}", self.issuer.trim_end_matches('/'))
    }

    /// A client, whoever told us of it.
    pub(crate) fn client(&self, id: &str, now: SystemTime) -> Option<Client> {
        let configured = self.settings.clients.iter().find(|it| it.id == id);
        configured.or_else(|| self.clients.get(id, now)?.as_ref()).cloned()
    }

    /// Whether the request is for the issuer's host. On this machine every name of it will do, but
    /// no other: a page that renames itself to this machine is not let in.
    pub(crate) fn is_addressed(&self, request: &Request) -> bool {
        let Some(asked) = request.first("host").map(|host| format!("http://{host}")) else {
            return true;
        };
        let (Some(asked), Some(own)) = (Parts::of(&asked), Parts::of(&self.issuer)) else {
            return false;
        };
        asked.host.eq_ignore_ascii_case(own.host) || (own.is_loopback() && asked.is_loopback())
    }
}

/// What a client wants, once it is clear that it may want it.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) client: String,
    /// What the client calls itself.
    pub(crate) name: Option<String>,
    pub(crate) redirect: String,
    /// Whether the request said where to; then the token request has to say it again.
    pub(crate) redirect_said: bool,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) resource: String,
    pub(crate) nonce: Option<String>,
    pub(crate) jkt: Option<String>,
}

/// A code that was given out.
pub(crate) struct Code {
    pub(crate) wish: Wish,
    pub(crate) user: String,
    pub(crate) expires: SystemTime,
    /// Whether it was spent, and the login that came of it, if one did.
    pub(crate) spent: Option<Option<String>>,
}

/// What was granted, to whom, for whom, and for use where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) client: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) resource: String,
    /// The key that the token is bound to.
    pub(crate) jkt: Option<String>,
}

/// What came of one authorization: a login.
pub(crate) struct Family {
    pub(crate) terms: Terms,
    /// The refresh token of now; none if there never was one.
    pub(crate) current: Option<String>,
    /// The one before, and until when it is forgiven.
    pub(crate) previous: Option<(String, SystemTime)>,
}

/// An access token that was given out.
pub(crate) struct Token {
    pub(crate) terms: Terms,
    /// The login it belongs to, and ends with.
    pub(crate) family: Option<String>,
    pub(crate) issued: SystemTime,
    pub(crate) expires: SystemTime,
}

//! A client of a gateway's admin API.

mod place;
pub(crate) mod table;
mod tls;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use trunkline_transport::http::client::{Pieces, send_single};

use crate::failure::{CONNECT, Failure, PEER, TIMEOUT};
use crate::secret::Source;
use crate::state;

use place::Place;

/// Which gateway.
#[derive(Clone, clap::Args)]
pub(crate) struct Gateway {
    /// The address of its admin API: unix:PATH, or a URL. The default is in the state folder.
    #[arg(long, value_name = "PLACE", env = "TRUNKLINE_ADMIN")]
    admin: Option<Place>,
    /// The source of the admin token, for a URL: env:NAME, file:PATH, or - for stdin. The default is
    /// the one in the state folder.
    #[arg(long, value_name = "SOURCE")]
    token: Option<Source>,
    /// The gateway's state folder.
    #[arg(long, value_name = "DIR", env = "TRUNKLINE_STATE")]
    state: Option<PathBuf>,
    /// A PEM file with certificates to trust, for https.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// A PEM file with our own certificate, for a gateway that wants one.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// A PEM file with its key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Gateway {
    /// The gateway whose admin API is at `HOST:PORT` or `unix:PATH`.
    pub(crate) fn at(place: &str) -> Result<Self, Failure> {
        let place = match place.starts_with("unix:") {
            true => place.to_owned(),
            false => format!("http://{place}"),
        };
        let admin = place.parse::<Place>().map_err(Failure::usage)?;
        let (token, state, cacert, cert, key) = (None, None, None, None, None);
        Ok(Self { admin: Some(admin), token, state, cacert, cert, key, json: false })
    }

    /// Every gateway that is meant: the one that was named, or all that run for this user. If there
    /// is none, one whose requests report that.
    pub(crate) async fn all(&self) -> Result<Vec<Self>, Failure> {
        if self.admin.is_some() {
            return Ok(vec![self.clone()]);
        }
        let usual = self.place()?;
        let mut places = vec![usual.clone()];
        places.extend(place::sockets(&self.state()?).map(Place::Unix).filter(|it| *it != usual));
        let mut found = Vec::new();
        for place in places {
            let connected = timeout(PATIENCE, place.connect(&self.secured())).await;
            if matches!(connected, Ok(Ok(_))) {
                found.push(Self { admin: Some(place), ..self.clone() });
            }
        }
        Ok(if found.is_empty() { vec![self.clone()] } else { found })
    }

    /// The gateways that are meant and have this server; all of them if none has it.
    pub(crate) async fn with(&self, server: &str) -> Result<Vec<Self>, Failure> {
        let all = self.all().await?;
        if all.len() == 1 {
            return Ok(all);
        }
        let mut found = Vec::new();
        for gateway in &all {
            if gateway.get(&format!("/v1/servers/{server}")).await.is_ok() {
                found.push(gateway.clone());
            }
        }
        Ok(if found.is_empty() { all } else { found })
    }

    /// A GET for JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let text = self.text(path).await?;
        serde_json::from_str(&text).map_err(|_| unreadable())
    }

    /// A GET for text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Failure> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        read(response).await
    }

    /// A POST.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let response = self.send(Method::POST, path, body).await?;
        serde_json::from_str(&read(response).await?).map_err(|_| unreadable())
    }

    /// A GET for lines, which are passed on as they arrive.
    pub(crate) async fn lines(
        &self,
        path: &str,
        mut each: impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut body = self.send(Method::GET, path, Bytes::new()).await?.into_body();
        let mut rest = Vec::new();
        while let Some(piece) = body.next().await {
            // A gateway that ends in the middle of a line sends nothing more.
            let Ok(piece) = piece else { break };
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|it| *it == b'\n') {
                let line: Vec<_> = rest.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]);
                if !line.trim().is_empty() {
                    each(&line)?;
                }
            }
            if rest.len() > LONGEST {
                return Err(unreadable().into());
            }
        }
        Ok(())
    }

    /// Sends a request; any status but success is a failure.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Pieces>, Failure> {
        let place = self.place()?;
        let stream = timeout(PATIENCE, place.connect(&self.secured())).await;
        let stream = stream.map_err(|_| {
            Failure::admin(TIMEOUT, format!("The gateway at `{place}` does not answer."))
        })??;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| Failure::usage(ODD_NAME))?;
        let host = HeaderValue::from_str(place.host()).map_err(|_| Failure::usage(ODD_NAME))?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = self.token(&place)? {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
                Failure::usage("The admin token has characters that no header has.")
            })?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = send_single(stream, request).await.map_err(|error| {
            Failure::admin(CONNECT, format!("The gateway at `{place}` hung up: {error}."))
                .advice("See whether it still runs; its log may say why.")
        })?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(refused(response).await),
        }
    }

    fn place(&self) -> Result<Place, Failure> {
        match &self.admin {
            Some(place) => Ok(place.clone()),
            None => {
                let state = self.state()?;
                let noted = std::fs::read_to_string(state.join("admin.place")).ok();
                let noted = noted.and_then(|it| it.trim().parse().ok());
                Ok(noted.unwrap_or_else(|| Place::Unix(state.join("admin.sock"))))
            }
        }
    }

    fn state(&self) -> Result<PathBuf, Failure> {
        let place = state::place(self.state.clone());
        place.map_err(|error| Failure::usage(format!("{error}.")))
    }

    fn secured(&self) -> tls::Files<'_> {
        let pair = self.cert.as_deref().zip(self.key.as_deref());
        tls::Files { roots: self.cacert.as_deref(), pair }
    }

    /// The token for the gateway; none over a Unix socket.
    fn token(&self, place: &Place) -> Result<Option<String>, Failure> {
        match &self.token {
            Some(source) => source.read().map(Some),
            // The stored token is never sent to another machine, and never in plain text.
            None if !place.is_own() => Ok(None),
            None => {
                // If there is none, the gateway refuses with an explanation.
                let kept = self.state()?.join("admin.token");
                let kept = std::fs::read_to_string(kept).ok();
                Ok(kept.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()))
            }
        }
    }
}

/// The gateway's refusal.
async fn refused(response: Response<Pieces>) -> Failure {
    let status = response.status();
    let text = read(response).await.unwrap_or_default();
    let error = serde_json::from_str::<Value>(&text).unwrap_or_default()["error"].take();
    let cause = match error["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("The gateway answered with the status {status}."),
    };
    let failure = Failure::admin(PEER, cause);
    match error["advice"].as_str() {
        // The request lacks a valid token.
        Some(_) if status == StatusCode::UNAUTHORIZED => failure.advice(
            "Pass `--token env:NAME` or `--token file:PATH`: the token is `gateway.admin.token` of \
             the catalog, or in `admin.token` of the gateway's state folder.",
        ),
        Some(advice) => failure.advice(advice),
        None => failure,
    }
}

async fn read(response: Response<Pieces>) -> Result<String, Failure> {
    let (mut text, mut body) = (Vec::new(), response.into_body());
    while let Some(piece) = body.next().await {
        text.extend_from_slice(&piece.map_err(|_| unreadable())?);
        if text.len() > LONGEST {
            return Err(unreadable());
        }
    }
    String::from_utf8(text).map_err(|_| unreadable())
}

fn unreadable() -> Failure {
    Failure::admin(PEER, "The gateway's answer cannot be read.")
        .advice("Check that the address is the one of its admin API.")
}

const ODD_NAME: &str = "That is no name of a server.";
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest response: that of a gateway with very many servers.
const LONGEST: usize = 64 << 20;

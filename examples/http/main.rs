//! How do I serve it inside my web server, and know who calls? A layer of axum checks the caller's
//! key; tools get a `Principal`, and one is visible to administrators only.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use trunkline::server::{IntoTool, bind};
use trunkline::{Caller, Principal, Server, tool};

/// The owner of a key. A real server asks a database.
fn owner(key: &str) -> Option<Principal> {
    match key {
        "Bearer ada-key" => Some(Principal::new("ada").scope("admin")),
        "Bearer bob-key" => Some(Principal::new("bob")),
        _ => None,
    }
}

async fn let_in(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let key = request.headers().get("authorization").and_then(|it| it.to_str().ok());
    let who = key.and_then(owner).ok_or(StatusCode::UNAUTHORIZED)?;
    request.extensions_mut().insert(who);
    Ok(next.run(request).await)
}

/// Says who is calling.
#[tool]
async fn whoami(who: Principal) -> String {
    who.subject
}

/// Forgets everything.
#[tool(destructive)]
async fn reset() -> &'static str {
    "Forgotten."
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let is_admin = |caller: &Caller<'_>| caller.principal().is_some_and(|it| it.may("admin"));
    let server = Server::builder("http", "1.0.0")
        .tool(whoami)
        .tool(reset.into_tool().visible(is_admin))
        .build();
    let app = Router::new()
        .fallback_service(server.http().service())
        .layer(middleware::from_fn(let_in))
        .route("/health", get(async || "ok"));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = bind(address).await?;
    eprintln!("Listening at http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app).await
}

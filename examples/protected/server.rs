//! How do I require a login? An authorization server issues tokens, this server checks them, and
//! some tools need more scopes than others.
//!
//! `trunkline demo --http --auth` has an authorization server to try it with.

use std::error::Error;

use trunkline::server::bind;
use trunkline::server::protect::{Dpop, JwtIssuer, Protect};
use trunkline::{Principal, Server, tool};

/// Says who is calling.
#[tool]
async fn whoami(who: Principal) -> String {
    who.subject
}

/// Writes a note.
#[tool(scopes = ["notes:write"])]
async fn write(who: Principal, text: String) -> String {
    format!("{} writes: {text}", who.subject)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let issuer = args.next().ok_or("Say who vouches for people, such as `https://id.example`.")?;
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = bind(address).await?;
    // Behind a proxy this is the public address.
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let protect = Protect::new(&*url)
        .jwt(JwtIssuer::new(issuer))
        .scopes_required(["notes"])
        .hierarchy([("notes:write", ["notes"])])
        .dpop(Dpop::Accept)
        .name("Notes");
    let server = Server::builder("notes", "1.0.0").tool(whoami).tool(write).build();
    let http = server.http().protect(protect)?;
    eprintln!("Listening at {url}");
    http.serve(listener, std::future::pending()).await?;
    Ok(())
}

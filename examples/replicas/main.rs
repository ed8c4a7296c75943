//! How do I run several processes as one? Start this more than once, with the same Redis and the same key,
//! and put any load balancer in front: clients neither notice which process answers, nor that one dies.
//!
//! `replicas redis://127.0.0.1 KEYFILE 127.0.0.1:8000 127.0.0.1:7474`

use std::error::Error;
use std::sync::Arc;

use trunkline::server::{Replicas, bind};
use trunkline::store::{Redis, RedisAddress, RedisSettings};
use trunkline::{Context, Server, ToolError, tool};

/// Says which process answers.
#[tool]
async fn process() -> String {
    std::process::id().to_string()
}

/// Books a room, if the user wants one. The answer may reach another process than the question came from.
#[tool]
async fn book(cx: Context, city: String) -> Result<String, ToolError> {
    let nights = cx.ask::<u8>(format!("How many nights in {city}?")).await?.accepted()?;
    Ok(format!("{nights} nights in {city}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [redis, key_file, public, internal] = &arguments[..] else {
        return Err("Usage: replicas REDIS KEYFILE PUBLIC-ADDRESS INTERNAL-ADDRESS".into());
    };
    let key = std::fs::read(key_file)?;
    let key = key.try_into().map_err(|_| "The key file must have 32 bytes.")?;

    let store = Redis::open(RedisSettings::new(RedisAddress::parse(redis)?))?;
    let replicas = Replicas::new(Arc::new(store), key, internal);
    let server = Server::builder("replicas", "1.0.0").tool(process).tool(book).replicas(replicas);

    let listener = bind(public).await?;
    eprintln!("Listening at http://{}/mcp", listener.local_addr()?);
    // On Ctrl-C it answers what is in flight and hands its sessions to the others.
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    Ok(server.build().http().serve(listener, shutdown).await?)
}

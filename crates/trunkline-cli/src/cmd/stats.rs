//! `trunkline stats`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::admin::Gateway;
use crate::admin::table::{span, table};
use crate::cmd::stats::samples::Numbers;
use crate::output::Screen;

mod samples;

/// Shows how much a gateway does and how long it takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show the last calls, too.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "20")]
    calls: Option<usize>,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    for gateway in args.gateway.all().await? {
        show(&gateway, args.calls, screen).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(gateway: &Gateway, calls: Option<usize>, screen: &Screen) -> Result<()> {
    let servers = samples::read(&gateway.text("/metrics").await?);
    let calls = match calls {
        Some(limit) => gateway.get(&format!("/v1/calls?limit={limit}")).await?["calls"].take(),
        None => Value::Null,
    };
    if gateway.json {
        let all = servers.iter().map(|(name, it)| to_json(name, it));
        let mut out = json!({ "servers": all.collect::<Vec<_>>() });
        if !calls.is_null() {
            out["calls"] = calls;
        }
        screen.json(&out)?;
        return Ok(());
    }
    let rows: Vec<_> = servers.iter().map(|(name, it)| row(name, it)).collect();
    let heads = ["SERVER", "CALLS", "FAILED", "P50", "P95", "NO INSTANCE", "STARTS", "STOPS"];
    match rows.is_empty() {
        true => screen.print("Nothing has been called yet.")?,
        false => screen.print(&table(screen, &heads, &rows))?,
    }
    if let Some(calls) = calls.as_array().filter(|it| !it.is_empty()) {
        let rows: Vec<_> = calls.iter().map(call).collect();
        let heads = ["TIME", "SERVER", "WHAT", "WHO", "TOOK", "OUTCOME", "TRACE"];
        screen.print(&format!("\n{}", table(screen, &heads, &rows)))?;
    }
    Ok(())
}

fn row(name: &str, numbers: &Numbers) -> Vec<String> {
    let quantile = |share| match numbers.quantile(share) {
        Some(bound) if bound.is_finite() => format!("≤ {}", span(bound * 1000.0)),
        Some(_) => "> 1 min".to_owned(),
        None => String::new(),
    };
    vec![
        name.to_owned(),
        numbers.calls.to_string(),
        numbers.failed.to_string(),
        quantile(0.5),
        quantile(0.95),
        numbers.not_acquired.to_string(),
        numbers.starts.to_string(),
        numbers.stops.to_string(),
    ]
}

fn to_json(name: &str, numbers: &Numbers) -> Value {
    // A call above all bucket bounds has no finite quantile.
    let quantile = |share| numbers.quantile(share).filter(|it| it.is_finite()).map(|it| it * 1e3);
    json!({
        "name": name,
        "calls": numbers.calls,
        "failed": numbers.failed,
        "p50Ms": quantile(0.5),
        "p95Ms": quantile(0.95),
        "notAcquired": numbers.not_acquired,
        "starts": numbers.starts,
        "stops": numbers.stops,
    })
}

fn call(call: &Value) -> Vec<String> {
    let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
    let what = format!("{} {}", text("method"), text("name"));
    let took = call["ms"].as_f64().map(span).unwrap_or_default();
    vec![
        text("time"),
        text("server"),
        what,
        text("principal"),
        took,
        text("outcome"),
        text("traceId"),
    ]
}

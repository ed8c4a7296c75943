//! `trunkline logs [-f] [SERVER]`

use std::future::{Future, poll_fn};
use std::process::ExitCode;
use std::task::Poll;

use anyhow::Result;
use serde_json::Value;

use crate::admin::Gateway;
use crate::cmd::retry::server_name;
use crate::output::{Screen, Tone, one_line};

/// Shows what a gateway and its servers wrote.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of this server alone.
    #[arg(value_parser = server_name)]
    server: Option<String>,
    /// Go on with what is written next.
    #[arg(short, long)]
    follow: bool,
    /// How many lines of the past.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 200)]
    lines: usize,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let mut path = format!("/v1/logs?limit={}", args.lines);
    let gateways = match &args.server {
        Some(server) => args.gateway.with(server).await?,
        None => args.gateway.all().await?,
    };
    if let Some(server) = &args.server {
        // So that an unknown name is reported instead of waited for.
        for gateway in &gateways {
            gateway.get(&format!("/v1/servers/{server}")).await?;
        }
        path.push_str("&server=");
        path.push_str(server);
    }
    if args.follow {
        path.push_str("&follow=1");
    }
    let each = |line: &str| match args.gateway.json {
        true => screen.print(&one_line(line)),
        false => screen.print(&shown(screen, line)),
    };
    // Concurrently: a followed log has no end.
    let mut open: Vec<_> = gateways.iter().map(|it| Box::pin(it.lines(&path, each))).collect();
    let mut told = Ok(());
    poll_fn(|cx| {
        open.retain_mut(|it| match it.as_mut().poll(cx) {
            Poll::Ready(ended) => {
                told = std::mem::replace(&mut told, Ok(())).and(ended);
                false
            }
            Poll::Pending => true,
        });
        if open.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    told?;
    Ok(ExitCode::SUCCESS)
}

/// A line for people: time, source, text.
fn shown(screen: &Screen, line: &str) -> String {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return one_line(line) };
    if let Some(missed) = line["missed"].as_u64() {
        return screen.tone(Tone::Dim, &format!("({missed} lines came too fast and are missing)"));
    }
    let text = |name: &str| line[name].as_str().filter(|it| !it.is_empty());
    let mut who = text("server").unwrap_or("gateway").to_owned();
    if let Some(instance) = line["instance"].as_u64() {
        who = format!("{who}#{instance}");
    }
    format!(
        "{} {} {}",
        screen.tone(Tone::Dim, &one_line(text("at").unwrap_or_default())),
        screen.tone(Tone::Name, &one_line(&who)),
        one_line(text("line").unwrap_or_default())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColorWhen;

    #[test]
    fn a_line_says_when_who_and_what() {
        let screen = Screen::new(ColorWhen::Never);
        for (line, expected) in [
            (
                r#"{"at":"T","server":"git","instance":3,"source":"stderr","line":"a\u001b[2Jb"}"#,
                "T git#3 a\\u{1b}[2Jb",
            ),
            (r#"{"at":"T","server":"git","source":"gateway","line":"a"}"#, "T git a"),
            (r#"{"at":"T","server":"","source":"gateway","line":"a"}"#, "T gateway a"),
            (r#"{"missed":4}"#, "(4 lines came too fast and are missing)"),
            ("what\u{7}", "what\\u{7}"),
        ] {
            assert_eq!(shown(&screen, line), expected);
        }
    }
}

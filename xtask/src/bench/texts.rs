//! A text of 16 MB through a gateway and through a bare one → how fast it goes, and how often it is in memory at once.

use super::figures::needed;
use super::gateway::cases::{EMBEDDED_GATEWAY, GATEWAYS, Gateway, STATELESS, Upstream, case};
use super::gateway::measurement;
use super::growth::axes::told;
use super::programs::{self, Programs};
use super::{is_quick, load_average, median, thousands, verdict, write_result};

/// Runs the benchmark. A missed target is a figure, not an error; a gateway that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let is_quick = is_quick(args, "texts", USAGE)?;
    let (rounds, milliseconds) = if is_quick { (1, "500") } else { (5, "2000") };
    let load = load_average();
    let programs = Programs::build([
        &programs::DRIVER,
        &programs::BARE.stdio,
        &programs::BARE.http,
        &programs::BARE_GATEWAY,
        &programs::EMBEDDED_GATEWAY,
    ])?;
    let (mut text, mut failures) = (HEAD.replace("{load}", &load), Vec::new());
    for (upstream, name) in [(Upstream::Stdio, "stdio"), (Upstream::Http, "HTTP")] {
        match measure(&programs, upstream, rounds, milliseconds) {
            Ok([bare, ours]) => text += &rows(name, &bare, &ours),
            Err(sentence) => failures.push(format!("an upstream over {name}: {sentence}")),
        }
    }
    print!("{text}");
    if !is_quick && failures.is_empty() {
        write_result("texts.md", &text)?;
    }
    verdict(&failures)
}

/// What was seen of one gateway.
#[derive(Default)]
struct Carried {
    /// Calls a second, and microseconds of CPU a call, of each round.
    calls_per_s: Vec<f64>,
    cpu_us: Vec<f64>,
    /// The most memory with a short text, and with the long one, in KiB.
    short: f64,
    long: f64,
}

impl Carried {
    /// How many times the long text was in memory.
    fn copies(&self) -> f64 {
        (self.long - self.short).max(0.0) * 1024.0 / LENGTH as f64
    }
}

/// The bare gateway and ours in turn, so that a slow minute of the machine hits both.
fn measure(
    programs: &Programs,
    upstream: Upstream,
    rounds: usize,
    milliseconds: &str,
) -> Result<[Carried; 2], String> {
    let drive = |gateway: &Gateway, length: u64, amount: [&str; 2]| {
        let load = measurement(programs, &case(STATELESS, upstream, 1), gateway);
        programs.drive(&told(load, "--payload", length).words(&amount, &[]))
    };
    let mut all = [Carried::default(), Carried::default()];
    for round in 0..rounds {
        for (gateway, carried) in [&GATEWAYS[0], &EMBEDDED_GATEWAY].into_iter().zip(&mut all) {
            eprintln!("round {} of {rounds}, {}", round + 1, gateway.label);
            if round == 0 {
                carried.short = needed(&drive(gateway, 1, ["--calls", "3"])?, "peak_kib")?;
            }
            let report = drive(gateway, LENGTH, ["--milliseconds", milliseconds])?;
            carried.calls_per_s.push(needed(&report, "calls_per_s")?);
            carried.cpu_us.push(needed(&report, "gateway_cpu_us")?);
            carried.long = carried.long.max(needed(&report, "peak_kib")?);
        }
    }
    Ok(all)
}

fn rows(upstream: &str, bare: &Carried, ours: &Carried) -> String {
    let middle = |values: &[f64]| median(values.to_vec()).unwrap_or_default();
    let row = |label: &str, it: &Carried, speed: String, copies: String| {
        let megabytes = middle(&it.calls_per_s) * LENGTH as f64 / 1e6;
        let cpu = middle(&it.cpu_us) / 1e3;
        let peak = thousands(it.long as u64);
        format!(
            "| {upstream} | {label} | {megabytes:.0} MB/s | {cpu:.1} ms | {speed} | {peak} KiB | {copies} |\n"
        )
    };
    let of_bare = |pick: fn(&Carried) -> &Vec<f64>| middle(pick(ours)) / middle(pick(bare));
    let speed = of_bare(|it| &it.calls_per_s);
    let speed = format!(
        "{speed:.2} of the bytes, {:.2} of the CPU {}",
        of_bare(|it| &it.cpu_us),
        mark(speed >= 0.8)
    );
    let copies = ours.copies();
    row("bare gateway", bare, String::new(), format!("{:.1}", bare.copies()))
        + &row("gateway", ours, speed, format!("{copies:.1} {}", mark(copies <= MOST_COPIES)))
}

fn mark(is_met: bool) -> &'static str {
    if is_met { "✓" } else { "✗" }
}

const LENGTH: u64 = 16_000_000;
/// Two, and what else a call takes.
const MOST_COPIES: f64 = 2.05;

const HEAD: &str = "# Long texts through a gateway\n\n\
    Written by `cargo xtask bench texts`: a text of 16 MB is echoed through a bare gateway and through the library of\n\
    `trunkline serve` in turn, one call at a time at 2026-07-28; medians of the rounds. Load average {load} when it began: on a\n\
    machine that does something else, read the CPU. The targets are 0.8 of the bare gateway's bytes a second, and two copies:\n\
    the most memory that the gateway ever had, without what it had with a text of one byte, by the length of the text. The\n\
    allocator of the HTTP upstream keeps what it has, whichever gateway is in front of it.\n\n\
    | upstream | | speed | CPU a call | of bare's (≥ 0.8) | most memory | copies (≤ 2) |\n|---|---|---|---|---|---|---|\n";

pub const USAGE: &str = "\
cargo xtask bench texts [--quick]
  --quick               one short round; nothing is written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_beyond_what_a_short_text_takes() {
        let carried = |calls_per_s, long| Carried {
            calls_per_s: vec![calls_per_s, 1.0, 99.0],
            cpu_us: vec![1000.0],
            short: 10_000.0,
            long,
        };
        let rows = rows("stdio", &carried(10.0, 72_500.0), &carried(7.0, 41_250.0));
        assert!(
            rows.contains("bare gateway | 160 MB/s | 1.0 ms |  | 72,500 KiB | 4.0 |"),
            "{rows}"
        );
        assert!(rows.contains("| 0.70 of the bytes, 1.00 of the CPU ✗ |"), "{rows}");
        assert!(rows.ends_with("| 41,250 KiB | 2.0 ✓ |\n"), "{rows}");
    }
}

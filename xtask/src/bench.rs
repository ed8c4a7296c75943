//! `cargo xtask bench NAME` → what a call costs here, in a bare program and in rmcp, and whether the targets are met.

mod build;
mod callgrind;
mod chart;
mod counted;
mod counts;
mod figures;
mod gateway;
mod growth;
mod http;
mod instructions;
mod memory;
mod plot;
mod programs;
mod replicas;
mod sessions;
mod start;
mod stdio;
mod svg;
mod texts;

use std::fs;
use std::path::Path;

use programs::Programs;

/// Runs the benchmark named by the arguments.
pub fn run(args: &[String]) -> Result<(), String> {
    let (name, rest) = args.split_first().map_or(("", args), |(name, rest)| (name, rest));
    match BENCHMARKS.iter().find(|(known, ..)| *known == name) {
        Some((_, run, _)) => run(rest),
        None => {
            let usages: Vec<&str> = BENCHMARKS.iter().map(|(.., usage)| *usage).collect();
            Err(format!("Say what to measure.\n\n{}", usages.join("\n\n")))
        }
    }
}

type Benchmark = (&'static str, fn(&[String]) -> Result<(), String>, &'static str);

/// Every benchmark: its name, the function that runs it, how it is called.
const BENCHMARKS: [Benchmark; 11] = [
    ("instructions", instructions::run, instructions::USAGE),
    ("growth", growth::run, growth::USAGE),
    ("stdio", stdio::run, stdio::USAGE),
    ("http", http::run, http::USAGE),
    ("gateway", gateway::run, gateway::USAGE),
    ("replicas", replicas::run, replicas::USAGE),
    ("sessions", sessions::run, sessions::USAGE),
    ("memory", memory::run, memory::USAGE),
    ("texts", texts::run, texts::USAGE),
    ("start", start::run, start::USAGE),
    ("build", build::run, build::USAGE),
];

/// A benchmark's options, and its programs, built and ready to run.
struct Bench<O> {
    options: O,
    programs: Programs,
}

/// Hands each option of a benchmark to `take`, with a way to the value after it. `take` says whether it knows the option.
fn options<'a>(
    args: &'a [String],
    name: &str,
    usage: &str,
    mut take: impl FnMut(&str, &mut dyn FnMut() -> Result<&'a str, String>) -> Result<bool, String>,
) -> Result<(), String> {
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| format!("`{word}` needs a value.\n\n{usage}"));
        if !take(word, &mut value)? {
            return Err(format!("`{word}` is no option of `bench {name}`.\n\n{usage}"));
        }
    }
    Ok(())
}

/// Whether `--quick`, the only option, is given.
fn is_quick(args: &[String], name: &str, usage: &str) -> Result<bool, String> {
    let mut is_quick = false;
    options(args, name, usage, |word, _| {
        is_quick = word == "--quick";
        Ok(is_quick)
    })?;
    Ok(is_quick)
}

/// Keeps what is named after `--only`.
fn keep_only<T>(
    all: &mut Vec<T>,
    label: impl Fn(&T) -> &str,
    value: &str,
    usage: &str,
) -> Result<(), String> {
    let wanted: Vec<&str> = value.split(',').collect();
    let is_unknown = |it: &&&str| all.iter().all(|known| label(known) != **it);
    if let Some(unknown) = wanted.iter().find(is_unknown) {
        return Err(format!("`{unknown}` is not measured here.\n\n{usage}"));
    }
    all.retain(|it| wanted.contains(&label(it)));
    Ok(())
}

/// How many rounds are measured, of which the median counts.
fn rounds(value: &str, usage: &str) -> Result<usize, String> {
    value.parse().ok().filter(|rounds| *rounds >= 3).ok_or_else(|| {
        format!("`--rounds` takes a number from 3 on; a median of fewer says little.\n\n{usage}")
    })
}

/// Whether everything that was to be measured could be.
fn verdict(failures: &[String]) -> Result<(), String> {
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// A number out of the driver's flat JSON object, which is all the JSON this needs to read.
fn number(report: &str, key: &str) -> Option<f64> {
    let (_, rest) = report.split_once(&format!("\"{key}\":"))?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().filter(|first| first.parse::<f64>().is_ok()).unwrap_or("0").to_owned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path)
        .map_err(|error| format!("`{}` cannot be read: {error}.", path.display()))
}

/// Writes a file of `bench/results`, which is made when it is missing.
fn write_result(name: &str, text: &str) -> Result<(), String> {
    let folder = crate::run::root().join("bench").join("results");
    let path = folder.join(name);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("`{}` cannot be written: {error}.", path.display()))
}

/// A command line → its words.
#[cfg(test)]
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_by_thousands() {
        assert_eq!(
            ["7", "802", "16,700", "1,234,567"],
            [7, 802, 16_700, 1_234_567].map(thousands)[..]
        );
    }

    #[test]
    fn a_number_is_found_by_its_key() {
        let report = r#"{"calls":9,"p50_us":43.1,"label":"x"}"#;
        assert_eq!(number(report, "p50_us"), Some(43.1));
        assert_eq!(number(report, "p99_us"), None);
    }
}

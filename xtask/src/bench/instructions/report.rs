//! What was counted → the page and the JSON of `bench/results`.

use serde_json::json;

use super::super::thousands;
use super::stages;
use super::{Counted, Kind, Recorded};
use crate::json::Json;

/// The whole page, which is also what is printed.
pub fn text(counted: &[Counted], rustc: &str) -> String {
    let mut out = format!(
        "# Instructions a call\n\n\
         Written by `cargo xtask bench instructions`, built by {rustc}: what one `tools/call` of `echo` with 100 bytes takes\n\
         the program that answers or carries it, counted by callgrind. Two runs of different length are compared, so that start\n\
         and end cancel out. There is one connection and one thread, and the kernel's instructions are not counted. The figures\n\
         do not depend on how busy the machine is; two runs differ by up to 3 %, nearly all of it in the allocator. Allocations are calls of `malloc`,\n\
         `calloc` and `realloc`.\n\n## Paths\n\n"
    );
    out += &paths(counted, true);
    out += "\n## What recording costs\n\n\
        A gateway records its calls unless told `recording: off`. Allocations of both lie differently in the heap, so what the\n\
        allocator takes is left out here.\n";
    out += &recording(counted);
    out += "\n## Where they go\n\n";
    out += "Each function is counted in one stage, by its name and without what it calls; \
        `bench instructions PATH --functions 40`\nshows which. Where the compiler put a function into its caller, it counts there.\n\n";
    out += &stages(counted, |kind| matches!(kind, Kind::Gateway(_)));
    out += "\n";
    out += &stages(counted, |kind| matches!(kind, Kind::Http(_)));
    out += "\n";
    out += &stages(counted, |kind| matches!(kind, Kind::Stdio(_) | Kind::Client(_)));
    out
}

/// The table of all paths, with what is promised of each if these are releases, of which it is promised.
pub fn paths(counted: &[Counted], is_promised: bool) -> String {
    let mut out = "| path | | bare | trunkline | ÷ bare | target | allocations, bare | trunkline | target |\n\
        |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let target = |most: Option<f64>, digits: usize, measured: f64| {
        let most = most.filter(|_| is_promised);
        most.map_or(String::new(), |most| format!("≤ {most:.digits$} {}", mark(measured <= most)))
    };
    for it in counted {
        out += &format!(
            "| `{}` | {} | {} | {} | {:.2} | {} | {:.1} | {:.1} | {} |\n",
            it.path.name,
            it.path.what(),
            whole(it.bare.instructions),
            whole(it.ours.instructions),
            it.ratio(),
            target(it.path.most, 2, it.ratio()),
            it.bare.allocations,
            it.ours.allocations,
            target(it.path.most_allocations, 0, it.ours.allocations),
        );
    }
    out
}

/// The table of what recording costs, where both were counted.
pub fn recording(counted: &[Counted]) -> String {
    let all = Recorded::all(counted);
    if all.is_empty() {
        return String::new();
    }
    let mut out =
        "\n| | recorded | | not recorded | ÷ | target |\n|---|---|---|---|---|---|\n".to_owned();
    for it in all {
        out += &format!(
            "| `{}` | {} | `{}` | {} | {:.3} | ≤ {:.2} {} |\n",
            it.pair.on,
            whole(it.recorded),
            it.pair.off,
            whole(it.unrecorded),
            it.ratio(),
            it.pair.most,
            mark(it.is_met()),
        );
    }
    out
}

fn mark(is_met: bool) -> &'static str {
    if is_met { "✓" } else { "✗" }
}

/// One row a stage, one column a path of this kind.
fn stages(counted: &[Counted], is_wanted: impl Fn(Kind) -> bool) -> String {
    let columns: Vec<&Counted> = counted.iter().filter(|it| is_wanted(it.path.kind)).collect();
    let cells = |of: &dyn Fn(&Counted) -> String| {
        columns.iter().map(|it| format!(" {} |", of(it))).collect::<String>()
    };
    let mut out = format!("| stage |{}\n", cells(&|it| format!("`{}`", it.path.name)));
    out += &format!("|---|{}\n", "---|".repeat(columns.len()));
    for stage in stages::names() {
        let cost = |it: &Counted| {
            let own = it.ours.functions.iter().filter(|(name, _)| stages::of(name) == stage);
            let cost: f64 = own.map(|(_, cost)| cost).sum();
            format!("{} ({:.0} %)", whole(cost), cost * 100.0 / it.ours.instructions)
        };
        out += &format!("| {stage} |{}\n", cells(&cost));
    }
    out += &format!("| all |{}\n", cells(&|it| whole(it.ours.instructions)));
    out + &format!("| the bare program |{}\n", cells(&|it| whole(it.bare.instructions)))
}

/// The machine's table with what was counted in place of what it said before: of releases, and of what the tests compare.
pub fn json(table: &Json, released: &[Counted], checked: &[Counted], rustc: &str) -> String {
    let mut table = if table.is_object() { table.clone() } else { json!({}) };
    for (part, counted) in [("released", released), ("checked", checked)] {
        if !counted.is_empty() {
            table[part] = counted.iter().map(|it| (it.path.name.to_owned(), row(it))).collect();
            table[part]["rustc"] = rustc.into();
        }
    }
    format!("{table:#}\n")
}

fn row(it: &Counted) -> Json {
    let tenth = |number: f64| (number * 10.0).round() / 10.0;
    json!({
        "instructions": it.ours.instructions.round() as u64,
        "bare": it.bare.instructions.round() as u64,
        "ratio": (it.ratio() * 1e4).round() / 1e4,
        "allocations": tenth(it.ours.allocations),
        "outside_allocator": stages::outside_allocator(&it.ours).round() as u64,
        "bare_outside_allocator": stages::outside_allocator(&it.bare).round() as u64,
    })
}

fn whole(number: f64) -> String {
    thousands(number.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::paths::PATHS;
    use super::*;
    use crate::bench::callgrind::PerCall;

    fn counted() -> Vec<Counted> {
        let of = |instructions, functions: &[(&str, f64)]| PerCall {
            instructions,
            allocations: 7.0,
            functions: functions.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect(),
        };
        let functions = [("malloc", 500.0), ("somewhere::else", 1500.0)];
        let path = PATHS.iter().find(|path| path.name == "http").expect("it is counted");
        let bare = of(1000.0, &[("somewhere::else", 1000.0)]);
        vec![Counted { path, bare, ours: of(2000.0, &functions) }]
    }

    #[test]
    fn every_stage_has_its_share() {
        let text = text(&counted(), "rustc 1");
        assert!(
            text.contains("| 1,000 | 2,000 | 2.00 | ≤ 1.35 ✗ | 7.0 | 7.0 | ≤ 12 ✓ |"),
            "{text}"
        );
        assert!(text.contains("| allocator | 500 (25 %) |"), "{text}");
        assert!(text.contains("| other | 1,500 (75 %) |"), "{text}");
    }

    #[test]
    fn the_json_is_what_the_check_reads() {
        let before = json!({"released": {"http": 1}, "checked": {"gone": 1}});
        let json = json(&before, &[], &counted(), "rustc 1");
        assert_eq!(super::super::check::compare(&counted(), &json, "rustc 1"), Ok(()));
        assert!(json.contains("released") && !json.contains("gone"), "{json}");
    }
}

//! What was counted and the table of it → whether a path became dearer.

use std::fmt;

use super::super::thousands;
use super::paths::Recording;
use super::stages::outside_allocator;
use super::{Counted, Recorded};
use crate::json::{self, Json};

/// Fails with a sentence for every path that became too dear: by the ratio to the bare program of what is not the
/// allocator's, or by the allocations. The ratio, because a compiler or a version of hyper that moves both programs is not
/// what is looked for.
pub fn compare(counted: &[Counted], table: &str, rustc: &str) -> Result<(), String> {
    let table = json::parse(table)?;
    let known = table["checked"]["rustc"].as_str().unwrap_or("an unknown compiler");
    let mut dearer = Vec::new();
    for it in counted {
        let Some(before) = Row::read(&table["checked"][it.path.name]) else {
            dearer.push(format!("`{}` is not in the table.", it.path.name));
            continue;
        };
        let now = Row::of(it);
        if now.is_dearer_than(&before) {
            dearer.push(format!(
                "`{}` takes {now}; the table says {before}, and {} % more is too much.",
                it.path.name,
                TOLERANCE * 100.0
            ));
        } else if before.is_dearer_than(&now) {
            let name = it.path.name;
            println!(
                "`{name}` became cheaper: {now}; the table says {before}. Renew it to hold the ground."
            );
        }
    }
    for it in Recorded::all(counted).iter().filter(|it| !it.is_met()) {
        let Recording { on, off, most } = it.pair;
        dearer.push(format!(
            "`{on}`, which records its calls, takes {:.3} times the instructions of `{off}`, which does not; {most:.2} is the most.",
            it.ratio()
        ));
    }
    if rustc != known {
        println!(
            "The table was made by `{known}` and this is `{rustc}`: ratios may differ a little for that alone."
        );
    }
    match dearer.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{ADVICE}", dearer.join("\n"))),
    }
}

/// What is compared of a path.
struct Row {
    bare: f64,
    ours: f64,
    allocations: f64,
}

impl Row {
    fn of(it: &Counted) -> Row {
        let (bare, ours) = (outside_allocator(&it.bare), outside_allocator(&it.ours));
        Row { bare, ours, allocations: it.ours.allocations }
    }

    fn read(row: &Json) -> Option<Row> {
        let number = |key: &str| row[key].as_f64();
        Some(Row {
            bare: number("bare_outside_allocator")?,
            ours: number("outside_allocator")?,
            allocations: number("allocations")?,
        })
    }

    fn ratio(&self) -> f64 {
        self.ours / self.bare
    }

    fn is_dearer_than(&self, other: &Row) -> bool {
        // What grows once in many calls counts in fractions; one allocation more in each is one too many.
        self.ratio() > other.ratio() * (1.0 + TOLERANCE)
            || self.allocations > other.allocations * (1.0 + TOLERANCE) + 0.2
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: f64| thousands(number.round() as u64);
        write!(
            out,
            "{} instructions a call outside of the allocator, {:.3} times the {} of the bare program, and {:.1} allocations",
            count(self.ours),
            self.ratio(),
            count(self.bare),
            self.allocations
        )
    }
}

/// A hundred times what two runs of the same programs differ by.
const TOLERANCE: f64 = 0.03;
const ADVICE: &str = "If this is meant, renew the table with `cargo xtask bench instructions`, or what is checked \
    alone with `--renew`. If not, `cargo xtask bench instructions PATH --quick --functions 40` shows where they go.";

#[cfg(test)]
mod tests {
    use super::super::paths::PATHS;
    use super::*;
    use crate::bench::callgrind::PerCall;

    const TABLE: &str = r#"{"checked":{"rustc":"rustc 1","stdio":{"outside_allocator":2000,"bare_outside_allocator":1000,"allocations":5}}}"#;

    fn counted(bare: f64, ours: f64, allocations: f64) -> Vec<Counted> {
        let of = |own: f64| PerCall {
            instructions: own + 900.0,
            allocations,
            functions: vec![("main".to_owned(), own), ("malloc".to_owned(), 900.0)],
        };
        vec![Counted { path: &PATHS[0], bare: of(bare), ours: of(ours) }]
    }

    #[test]
    fn a_path_that_became_dearer_is_named_with_its_figures() {
        assert_eq!(compare(&counted(1000.0, 2050.0, 5.0), TABLE, "rustc 1"), Ok(()));
        let sentence = compare(&counted(1000.0, 2070.0, 5.0), TABLE, "rustc 1").unwrap_err();
        for part in ["`stdio` takes 2,070", "2.070 times the 1,000", "2.000 times", "3 % more"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(sentence.contains("renew the table with `cargo xtask bench instructions`"));
    }

    #[test]
    fn an_allocation_more_is_too_much() {
        let sentence = compare(&counted(1000.0, 2000.0, 6.0), TABLE, "rustc 1").unwrap_err();
        assert!(sentence.contains("6.0 allocations") && sentence.contains("5.0 allocations"));
    }

    #[test]
    fn what_makes_both_programs_dearer_is_let_through() {
        assert_eq!(compare(&counted(1200.0, 2420.0, 5.0), TABLE, "rustc 2"), Ok(()));
    }

    #[test]
    fn a_recorder_that_costs_more_than_is_promised_is_too_dear() {
        let table = r#"{"checked":{"rustc":"rustc 1",
            "embedded":{"outside_allocator":1040,"bare_outside_allocator":1000,"allocations":5},
            "unrecorded":{"outside_allocator":1000,"bare_outside_allocator":1000,"allocations":5}}}"#;
        let named = |name: &str, ours| {
            let path = PATHS.iter().find(|path| path.name == name).expect("it is counted");
            counted(1000.0, ours, 5.0).into_iter().map(move |it| Counted { path, ..it })
        };
        let compared = |on| {
            let both: Vec<_> = named("embedded", on).chain(named("unrecorded", 1000.0)).collect();
            compare(&both, table, "rustc 1")
        };
        assert_eq!(compared(1029.0), Ok(()));
        assert!(compared(1032.0).unwrap_err().contains("takes 1.032 times the instructions"));
    }

    #[test]
    fn a_path_without_a_row_is_an_error() {
        assert!(compare(&counted(1.0, 1.0, 1.0), r#"{"checked":{}}"#, "rustc 1").is_err());
    }
}

//! What was counted and the table of it → whether a path became dearer.

use super::super::thousands;
use super::Counted;
use crate::json::{self, Json};

/// Fails with a sentence for every path whose ratio to the bare program is too far above the table's. The ratio, because
/// a compiler or a version of hyper that moves both programs is not what is looked for.
pub fn compare(counted: &[Counted], table: &str, rustc: &str) -> Result<(), String> {
    let table = json::parse(table)?;
    let known = table["rustc"].as_str().unwrap_or("an unknown compiler");
    let mut dearer = Vec::new();
    for it in counted {
        let row = &table["checked"][it.path.name];
        let Some(before) = Row::read(row) else {
            dearer.push(format!("`{}` is not in the table.", it.path.name));
            continue;
        };
        let (now, allowed) = (it.ratio(), before.ratio() * (1.0 + TOLERANCE));
        if now > allowed {
            dearer.push(before.sentence(it));
        } else if now < before.ratio() * (1.0 - TOLERANCE) {
            println!(
                "`{}` became cheaper: {now:.3} times the bare program's, and the table says {:.3}. Renew it to hold the ground.",
                it.path.name,
                before.ratio()
            );
        }
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

/// What the table says of a path.
struct Row {
    bare: f64,
    ours: f64,
    allocations: f64,
}

impl Row {
    fn read(row: &Json) -> Option<Row> {
        let number = |key: &str| row[key].as_f64();
        Some(Row {
            bare: number("bare")?,
            ours: number("instructions")?,
            allocations: number("allocations")?,
        })
    }

    fn ratio(&self) -> f64 {
        self.ours / self.bare
    }

    fn sentence(&self, now: &Counted) -> String {
        let count = |number: f64| thousands(number.round() as u64);
        format!(
            "`{}` takes {} instructions a call, {:.3} times the {} of the bare program, with {:.1} allocations; \
             the table says {:.3} times ({} and {}), with {:.1} allocations, and {} % more is too much.",
            now.path.name,
            count(now.ours.instructions),
            now.ratio(),
            count(now.bare.instructions),
            now.ours.allocations,
            self.ratio(),
            count(self.ours),
            count(self.bare),
            self.allocations,
            TOLERANCE * 100.0
        )
    }
}

/// Three times what two runs of the same programs differ by at most.
const TOLERANCE: f64 = 0.03;
const ADVICE: &str = "If this is meant, renew the table with `cargo xtask bench instructions`. \
    If not, `cargo xtask bench instructions PATH --functions 40` shows where they go.";

#[cfg(test)]
mod tests {
    use super::super::paths::PATHS;
    use super::*;
    use crate::bench::callgrind::PerCall;

    const TABLE: &str = r#"{"rustc":"rustc 1","checked":{"stdio":{"instructions":2000,"bare":1000,"allocations":5}}}"#;

    fn counted(bare: f64, ours: f64) -> Vec<Counted> {
        let of = |instructions| PerCall { instructions, allocations: 6.0, functions: Vec::new() };
        vec![Counted { path: &PATHS[0], bare: of(bare), ours: of(ours) }]
    }

    #[test]
    fn a_path_that_became_dearer_is_named_with_its_figures() {
        assert_eq!(compare(&counted(1000.0, 2050.0), TABLE, "rustc 1"), Ok(()));
        let sentence = compare(&counted(1000.0, 2070.0), TABLE, "rustc 1").unwrap_err();
        for part in ["`stdio` takes 2,070", "2.070 times the 1,000", "2.000 times", "6.0", "5.0"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(sentence.contains("renew the table with `cargo xtask bench instructions`"));
    }

    #[test]
    fn what_makes_both_programs_dearer_is_let_through() {
        assert_eq!(compare(&counted(1200.0, 2420.0), TABLE, "rustc 2"), Ok(()));
    }

    #[test]
    fn a_path_without_a_row_is_an_error() {
        assert!(compare(&counted(1.0, 1.0), r#"{"checked":{}}"#, "rustc 1").is_err());
    }
}

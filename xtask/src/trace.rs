//! The table from requirement to test into a sentence for each row that no existing test shows.

/// Where the table is.
pub const TRACE: &str = "docs/internals/seeds.md";

/// Compares the table with the files of the repository, given as path and text.
pub fn check(trace: &str, files: &[(String, String)]) -> Vec<String> {
    let rows: Vec<_> =
        (1..).zip(trace.lines()).filter_map(|(at, line)| Row::read(at, line)).collect();
    let mut wrong = Vec::new();
    if rows.is_empty() {
        wrong.push(format!("{TRACE} has no row that begins with a number."));
    }
    for row in &rows {
        let mut is_shown = false;
        for span in row.shown.split('`').skip(1).step_by(2) {
            match named(span, files) {
                Some(Ok(())) => is_shown = true,
                Some(Err(why)) => wrong.push(format!("{TRACE}:{}: {why}", row.line)),
                None => {}
            }
        }
        if row.shown.contains("`peers`") {
            wrong.extend(said_by_peers(row, files));
        }
        for other in row.references() {
            let is_there = rows.iter().any(|it| it.number == other);
            is_shown |= is_there;
            if !is_there {
                wrong.push(format!("{TRACE}:{}: there is no row {other}.", row.line));
            }
        }
        if !is_shown {
            wrong.push(format!("{TRACE}:{}: {} names no test.", row.line, row.number));
        }
    }
    wrong
}

/// One requirement.
struct Row<'a> {
    line: usize,
    number: &'a str,
    shown: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: usize, text: &'a str) -> Option<Row<'a>> {
        let cells: Vec<_> = text.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
        let number = cells.first()?.trim();
        let is_number = number.split('.').all(|part| part.parse::<u32>().is_ok());
        (is_number && number.contains('.')).then_some(())?;
        Some(Row { line, number, shown: cells.last()?.trim() })
    }

    /// The rows that this one is shown by: `as 0.49, 0.50`.
    fn references(&self) -> impl Iterator<Item = &'a str> {
        let numbers = self.shown.strip_prefix("as ").unwrap_or_default();
        let numbers = numbers.split(';').next().unwrap_or_default();
        numbers.split(',').map(str::trim).filter(|number| !number.is_empty())
    }
}

/// Whether a code span names a test, and whether that exists; none if it is about something else.
fn named(span: &str, files: &[(String, String)]) -> Option<Result<(), String>> {
    let (place, test) = match span.split_once("::") {
        Some((place, test)) => (place, Some(test)),
        None => (span, None),
    };
    if span == "peers" {
        let is_there = files.iter().any(|(path, _)| path.starts_with("peers/"));
        return Some(
            is_there.then_some(()).ok_or_else(|| "there is no folder `peers`.".to_owned()),
        );
    }
    let (krate, rest) = place.split_once('/')?;
    let Some((_, folder)) = CRATES.iter().find(|(name, _)| *name == krate) else {
        // `roots/list` is a method, but nothing else has colons.
        return test.map(|_| Err(format!("`{span}` is in no crate that is known by `{krate}`.")));
    };
    let path = match rest.starts_with("src/") {
        true => format!("{folder}/{rest}.rs"),
        false => format!("{folder}/tests/it/{rest}.rs"),
    };
    let Some((_, text)) = files.iter().find(|(it, _)| *it == path) else {
        return Some(Err(format!("`{span}`: there is no file `{path}`.")));
    };
    let is_there = tests(text).any(|name| test.is_none_or(|test| test == name));
    Some(is_there.then_some(()).ok_or_else(|| format!("`{span}`: `{path}` has no such test.")))
}

/// The functions of a file that are tests.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[") || line.starts_with("//") {
            is_test |= line.starts_with("#[test") || line.starts_with("#[tokio::test");
            return None;
        }
        let was_test = std::mem::take(&mut is_test);
        let name =
            line.trim_start_matches("async ").strip_prefix("fn ")?.split(['(', '<']).next()?;
        was_test.then_some(name)
    })
}

/// What the row quotes must be said by a check in `peers/`.
fn said_by_peers(row: &Row<'_>, files: &[(String, String)]) -> Vec<String> {
    let peers = || files.iter().filter(|(path, _)| path.starts_with("peers/"));
    let quotes = row.shown.split('"').skip(1).step_by(2);
    let unsaid = quotes.filter(|quote| !peers().any(|(_, text)| text.contains(quote)));
    let about = |quote| format!("{TRACE}:{}: no check in `peers` says \"{quote}\".", row.line);
    unsaid.map(about).collect()
}

const CRATES: &[(&str, &str)] = &[
    ("auth", "crates/trunkline-auth"),
    ("authority", "crates/trunkline-authority"),
    ("cli", "crates/trunkline-cli"),
    ("conformance", "conformance"),
    ("gateway", "crates/trunkline-gateway"),
    ("proto", "crates/trunkline-proto"),
    ("sdk", "crates/trunkline"),
    ("store", "crates/trunkline-store"),
    ("testkit", "crates/trunkline-testkit"),
    ("transport", "crates/trunkline-transport"),
    ("wire", "crates/trunkline-wire"),
    ("xtask", "xtask"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(shown: &str) -> Vec<String> {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let files = [
            file(
                "crates/trunkline-proto/tests/it/calls.rs",
                "#[test]\nfn one() {}\n#[tokio::test(start_paused = true)]\n// Why.\nasync fn two() {}\nfn helper() {}\n",
            ),
            file("crates/trunkline-wire/src/frame/sse.rs", "    #[test]\n    fn inside() {}\n"),
            file("crates/trunkline-wire/tests/it/none.rs", "fn helper() {}\n"),
            file("peers/demo.mjs", "check(\"a prompt is filled in\")"),
        ];
        let trace = format!(
            "| # | a | b |\n|---|---|---|\n| 0.1 | x | `proto/calls::one` |\n| 0.2 | y | {shown} |\n"
        );
        check(&trace, &files)
    }

    #[test]
    fn rows_with_tests_that_exist_are_in_order() {
        for shown in [
            "`proto/calls::two`",
            "`proto/calls`",
            "`wire/src/frame/sse::inside`; more in [a](b.md)",
            "`roots/list` and `Client::close`: `proto/calls::one`",
            "`peers` (\"a prompt is filled in\")",
            "as 0.1",
            "as 0.1; `proto/calls::one`",
        ] {
            assert_eq!(breaches(shown), Vec::<String>::new(), "{shown}");
        }
    }

    #[test]
    fn a_wrong_name_is_told() {
        for (shown, why) in [
            (
                "`proto/calls::three`",
                "`proto/calls::three`: `crates/trunkline-proto/tests/it/calls.rs` has no such test.",
            ),
            (
                "`proto/calls::helper`",
                "`proto/calls::helper`: `crates/trunkline-proto/tests/it/calls.rs` has no such test.",
            ),
            (
                "`proto/call::one`",
                "`proto/call::one`: there is no file `crates/trunkline-proto/tests/it/call.rs`.",
            ),
            (
                "`wire/none`",
                "`wire/none`: `crates/trunkline-wire/tests/it/none.rs` has no such test.",
            ),
            ("`prot/calls::one`", "`prot/calls::one` is in no crate that is known by `prot`."),
            ("`peers` (\"a song\"), `proto/calls`", "no check in `peers` says \"a song\"."),
            ("as 0.9, 0.1", "there is no row 0.9."),
            ("**gateway**", "0.2 names no test."),
            ("[a page](b.md), `Client::close`", "0.2 names no test."),
        ] {
            let found = breaches(shown);
            assert!(found.iter().any(|it| it.ends_with(why)), "{shown}: {found:?}");
        }
    }

    #[test]
    fn a_table_without_rows_is_told() {
        assert_eq!(check("# Nothing\n", &[]).len(), 1);
    }
}

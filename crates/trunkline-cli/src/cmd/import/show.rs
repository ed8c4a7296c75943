//! The decisions about servers → a table for people, JSON for programs. Neither contains secrets.

use std::fmt::Write;

use serde_json::{Value, json};

use super::UnreadableFile;
use crate::clients::{Entry, Origin, Row, Secrets, Verdict, summary};
use crate::cmd::connect::shown;
use crate::output::{Screen, Tone, one_line};

/// A table: one part for each file.
pub(super) fn table(screen: &Screen, rows: &[Row], unread_files: &[UnreadableFile]) -> String {
    let mut out = String::new();
    let mut last = None;
    for row in rows {
        let found = &row.found;
        let head = (found.client, &found.path, &found.project);
        if last != Some(head) {
            let title = screen.tone(Tone::Bold, found.client.title());
            let project = found.project.as_deref().map(|it| format!(" (project {})", shown(it)));
            let gap = if last.is_some() { "\n" } else { "" };
            let _ =
                writeln!(out, "{gap}{title} {}{}", shown(&found.path), project.unwrap_or_default());
            last = Some(head);
        }
        one(screen, row, &mut out);
    }
    for it in unread_files {
        let what = screen.tone(Tone::Bad, "not understood:");
        let _ = writeln!(out, "{what} `{}`: {}", shown(&it.path), one_line(&it.why));
    }
    if rows.is_empty() && unread_files.is_empty() {
        out.push_str("No settings with servers were found.\n");
    }
    let _ = writeln!(out, "\n{}", counts(rows));
    out
}

fn one(screen: &Screen, row: &Row, out: &mut String) {
    let name = one_line(&row.name);
    let was =
        (row.name != row.found.name).then(|| format!(" (there `{}`)", one_line(&row.found.name)));
    let was = was.unwrap_or_default();
    let (sign, tone, text) = match &row.verdict {
        Verdict::Add => ("+", Tone::Good, "new".to_owned()),
        Verdict::Same(origin) => ("=", Tone::Dim, format!("the same as in {}", whose(origin))),
        Verdict::Conflict(origin, _) => ("!", Tone::Bad, format!("differs from {}", whose(origin))),
        Verdict::Replace(origin) => {
            ("~", Tone::Good, format!("takes the place of the one in {}", whose(origin)))
        }
        Verdict::Ours => ("·", Tone::Dim, "this gateway itself; it stays out".to_owned()),
        Verdict::Skip(why) => ("-", Tone::Dim, format!("stays out: {}", one_line(why))),
    };
    let _ = writeln!(
        out,
        "  {} {}{was}  {text}",
        screen.tone(tone, sign),
        screen.tone(Tone::Name, &name)
    );
    let Ok(entry) = &row.found.entry else { return };
    match &row.verdict {
        Verdict::Conflict(origin, there) => {
            let there = there.as_deref().map_or(vec!["not understood".to_owned()], summary);
            let title = row.found.client.title();
            side_by_side(out, (&whose(origin), &there), (title, &summary(entry)));
        }
        Verdict::Add | Verdict::Replace(_) => {
            for line in summary(entry) {
                let _ = writeln!(out, "      {}", screen.tone(Tone::Dim, &one_line(&line)));
            }
            for note in &entry.notes {
                let _ = writeln!(out, "      note: {}", one_line(note));
            }
        }
        _ => {}
    }
}

fn side_by_side(out: &mut String, left: (&str, &[String]), right: (&str, &[String])) {
    let width = left.1.iter().map(|it| it.chars().count()).max().unwrap_or(0).clamp(24, 48);
    let _ = writeln!(out, "      {:<width$} | {}", left.0, right.0);
    for place in 0..left.1.len().max(right.1.len()) {
        let line = |all: &[String]| all.get(place).map(|it| one_line(it)).unwrap_or_default();
        let _ = writeln!(out, "      {:<width$} | {}", line(left.1), line(right.1));
    }
    if left.1 == right.1 {
        let _ = writeln!(out, "      {:<width$} | (what is hidden differs)", "");
    }
}

fn whose(origin: &Origin) -> String {
    match origin {
        Origin::Catalog => "the catalog".to_owned(),
        Origin::Client(title) => title.clone(),
    }
}

fn counts(rows: &[Row]) -> String {
    let count = |is: fn(&Verdict) -> bool| rows.iter().filter(|it| is(&it.verdict)).count();
    format!(
        "{} new, {} replaced, {} the same, {} in conflict, {} left out",
        count(|it| matches!(it, Verdict::Add)),
        count(|it| matches!(it, Verdict::Replace(_))),
        count(|it| matches!(it, Verdict::Same(_))),
        count(|it| matches!(it, Verdict::Conflict(..))),
        count(|it| matches!(it, Verdict::Ours | Verdict::Skip(_))),
    )
}

/// A row for programs.
pub(super) fn to_json(row: &Row) -> Value {
    let (verdict, other) = match &row.verdict {
        Verdict::Add => ("add", Value::Null),
        Verdict::Same(origin) => ("same", json!({ "in": whose(origin) })),
        Verdict::Conflict(origin, there) => {
            ("conflict", json!({ "in": whose(origin), "is": there.as_deref().map(summary) }))
        }
        Verdict::Replace(origin) => ("replace", json!({ "in": whose(origin) })),
        Verdict::Ours => ("self", Value::Null),
        Verdict::Skip(why) => ("skip", json!({ "why": why })),
    };
    let entry = row.found.entry.as_ref().ok();
    json!({
        "client": row.found.client.name(),
        "path": row.found.path.display().to_string(),
        "project": row.found.project.as_ref().map(|it| it.display().to_string()),
        "name": row.found.name,
        "as": row.name,
        "verdict": verdict,
        "there": other,
        "is": entry.map(summary),
        "notes": entry.map(|it| &it.notes),
    })
}

/// Whether an entry contains values that are more than references, or secrets in its arguments or
/// URL.
pub(super) fn holds_values(entry: &Entry) -> bool {
    let is_value = |value: &str| !(value.contains("${") && value.ends_with('}'));
    let has_secret = || Secrets::default().replace("", entry) != *entry;
    entry.values().iter().any(|(_, value)| is_value(value)) || has_secret()
}

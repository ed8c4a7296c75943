//! Rows → aligned columns.

use crate::output::{Screen, Tone, one_line};

/// A table for people. The last column may have any length.
pub(crate) fn table(screen: &Screen, heads: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> =
        rows.iter().map(|row| row.iter().map(|it| one_line(it)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut out = screen.tone(Tone::Dim, &line(heads));
    for row in &rows {
        let cells: Vec<_> = row.iter().map(String::as_str).collect();
        out.push('\n');
        out.push_str(&line(&cells));
    }
    out.push('\n');
    out
}

/// A duration for a table.
pub(crate) fn span(millis: f64) -> String {
    match millis {
        it if it < 1.0 => format!("{:.0} µs", it * 1000.0),
        it if it < 1000.0 => format!("{it:.0} ms"),
        it if it < 90_000.0 => format!("{:.1} s", it / 1000.0),
        it if it < 5_400_000.0 => format!("{:.0} min", it / 60_000.0),
        it if it < 172_800_000.0 => format!("{:.0} h", it / 3_600_000.0),
        it => format!("{:.0} days", it / 86_400_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColorWhen;

    #[test]
    fn columns_stand_under_each_other_and_nothing_is_obeyed() {
        let rows = [["a", "1", "x\u{1b}[2J\ny"], ["long", "100", ""]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let found = table(&Screen::new(ColorWhen::Never), &["NAME", "N", "NOTE"], &rows);
        assert_eq!(found, "NAME  N    NOTE\na     1    x\\u{1b}[2J\\ny\nlong  100\n");
    }

    #[test]
    fn times_are_short() {
        let found: Vec<_> =
            [0.25, 2.4, 1500.0, 120_000.0, 7_200_000.0, 259_200_000.0].map(span).to_vec();
        assert_eq!(found, ["250 µs", "2 ms", "1.5 s", "2 min", "2 h", "3 days"]);
    }
}

//! What may grow beside a call → whether the call's cost grows with it, as plots.

pub mod axes;

use self::axes::{AXES, Axis, Growth};
use super::counted::{Measurement, count};
use super::plot::{Line, Plot};
use super::programs::{self, Programs};
use super::{thousands, verdict, write_result};

/// Runs the benchmark. A cost that grows faster than it may is said, and is no error; a program that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    programs::ensure("valgrind")?;
    crate::run::raise_files();
    let programs = Programs::build_quickly(axes::PROGRAMS)?;
    let (mut text, mut failures) = (HEAD.to_owned(), Vec::new());
    for axis in &options.axes {
        let curves = measure(&programs, axis, options.is_quick, &mut failures);
        text += &section(axis, &curves);
        if options.writes() {
            write_result(&format!("growth-{}.svg", axis.name), &plot(axis, &curves))?;
        }
    }
    print!("{text}");
    if options.writes() && options.axes.len() == AXES.len() {
        write_result("growth.md", &text)?;
    }
    verdict(&failures)
}

struct Options {
    axes: Vec<&'static Axis>,
    is_quick: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options { axes: Vec::new(), is_quick: false };
        for word in args {
            match AXES.iter().find(|axis| axis.name == word) {
                Some(axis) => options.axes.push(axis),
                None if word == "--quick" => options.is_quick = true,
                None => {
                    let names: Vec<&str> = AXES.iter().map(|axis| axis.name).collect();
                    let names = names.join("`, `");
                    return Err(format!("`{word}` does not grow here; `{names}` do.\n\n{USAGE}"));
                }
            }
        }
        if options.axes.is_empty() {
            options.axes = AXES.iter().collect();
        }
        Ok(options)
    }

    fn writes(&self) -> bool {
        !self.is_quick
    }
}

/// What one program takes at each size.
struct Curve {
    label: &'static str,
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// How the cost follows the size over all that was tried: 0 not at all, 1 in proportion, 2 with its square.
    fn exponent(&self) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        (last.0 > first.0).then(|| (last.1 / first.1).ln() / (last.0 / first.0).ln())
    }

    /// The same at the far end, where what grows has overtaken what does not.
    fn last_exponent(&self) -> Option<f64> {
        let points = self.points.len().checked_sub(2).map(|at| self.points[at..].to_vec())?;
        Curve { label: self.label, points }.exponent()
    }
}

fn measure(
    programs: &Programs,
    axis: &Axis,
    is_quick: bool,
    failures: &mut Vec<String>,
) -> Vec<Curve> {
    let mut all = Vec::new();
    for line in axis.lines {
        for &size in axis.sizes.iter().take(if is_quick { 2 } else { usize::MAX }) {
            let measurement = (line.measurement)(programs, size);
            let name = format!("{}, {}, {size}", axis.name, line.label);
            all.push((line.label, size, Measurement { name, is_late: true, ..measurement }));
        }
    }
    let measurements: Vec<&Measurement> = all.iter().map(|(.., measurement)| measurement).collect();
    let mut curves: Vec<Curve> = Vec::new();
    for ((label, size, measurement), outcome) in all.iter().zip(count(programs, &measurements)) {
        if curves.last().is_none_or(|curve| curve.label != *label) {
            curves.push(Curve { label, points: Vec::new() });
        }
        match (outcome, curves.last_mut()) {
            (Ok(per_call), Some(curve)) => curve.points.push((*size as f64, per_call.instructions)),
            (Err(sentence), _) => failures.push(format!("`{}`: {sentence}", measurement.name)),
            _ => {}
        }
    }
    curves
}

fn section(axis: &Axis, curves: &[Curve]) -> String {
    let mut out =
        format!("\n## {}\n\n![growth-{}.svg](growth-{}.svg)\n\n", axis.title, axis.name, axis.name);
    let header: String = axis.sizes.iter().map(|size| format!(" {} |", thousands(*size))).collect();
    out += &format!("| |{header} growth |\n|---|{}---|\n", "---|".repeat(axis.sizes.len()));
    for curve in curves {
        let cell = |size: &u64| {
            let point = curve.points.iter().find(|point| point.0 == *size as f64);
            format!(" {} |", point.map_or("–".into(), |point| thousands(point.1.max(0.0) as u64)))
        };
        let cells: String = axis.sizes.iter().map(cell).collect();
        out += &format!("| {} |{cells} {} |\n", curve.label, judged(axis.growth, curve));
    }
    out + &format!("\n{}\n", axis.why)
}

/// In a word how a cost grew, and a mark where it may not.
fn judged(growth: Growth, curve: &Curve) -> String {
    let Some((all, last)) = curve.exponent().zip(curve.last_exponent()) else {
        return "not measured".into();
    };
    let word = match all.max(last) {
        it if it < FLAT => "flat",
        it if it <= LINEAR && last <= LINEAR => "at most linear",
        _ => "more than linear",
    };
    let is_allowed = word == "flat" || (word == "at most linear" && growth == Growth::Linear);
    format!("{word} ({last:.2}) {}", if is_allowed { "✓" } else { "✗" })
}

fn plot(axis: &Axis, curves: &[Curve]) -> String {
    let line = |curve: &Curve| Line { label: curve.label, points: curve.points.clone() };
    Plot {
        title: format!("{}: instructions a call", axis.title),
        note: "both axes are logarithmic; what grows with its cause is as steep as the dashed line"
            .into(),
        series: curves.iter().map(line).collect(),
    }
    .svg()
}

const HEAD: &str = "# How the cost of a call grows\n\n\
    Written by `cargo xtask bench growth`: instructions a call by callgrind, from the first call on, so that no start is in\n\
    them, of programs with little optimization, so that the shape counts and not the height;\n\
    [instructions.md](instructions.md) has the height. `trunkline` is a server, `gateway` the library of `trunkline serve` in\n\
    front of a bare server. The number beside a word is the exponent between the two largest\n\
    sizes: 0 is flat, 1 is linear.\n";

/// Below this exponent nothing that is worth a name grows.
const FLAT: f64 = 0.15;
/// Above this one a cost outgrows its cause.
const LINEAR: f64 = 1.1;

pub const USAGE: &str = "\
cargo xtask bench growth [NAME…] [--quick]
  NAME                  of `servers`, `tools`, `sessions`, `subscribers`, `rules`, `payload`, `depth` and `connections`;
                        all, and the page is written, if none is named; plots are written either way
  --quick               the two smallest sizes; nothing is written";

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve { label: "trunkline", points: points.to_vec() }
    }

    #[test]
    fn growth_is_judged_by_its_exponent() {
        let flat = curve(&[(1.0, 100.0), (10.0, 101.0), (100.0, 102.0)]);
        let linear = curve(&[(1.0, 100.0), (10.0, 150.0), (100.0, 1500.0)]);
        let square = curve(&[(1.0, 100.0), (10.0, 150.0), (100.0, 15_000.0)]);
        assert!(judged(Growth::Flat, &flat).starts_with("flat"));
        assert!(judged(Growth::Flat, &linear).ends_with('✗'));
        assert!(judged(Growth::Linear, &linear).ends_with('✓'));
        assert!(judged(Growth::Linear, &square).starts_with("more than linear"));
    }

    #[test]
    fn a_name_that_does_not_grow_is_refused() {
        let parse = |word: &str| Options::parse(&[word.to_owned()]).map(|it| it.axes.len());
        assert!(parse("nothing").is_err());
        assert_eq!((parse("tools"), parse("--quick")), (Ok(1), Ok(AXES.len())));
    }
}

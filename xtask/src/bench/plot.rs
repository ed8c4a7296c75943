//! Series of points → lines in an SVG, both axes logarithmic: what grows with its cause rises like the dashed line.

use super::svg::{colour, label, picture};
use super::thousands;

/// Lines of one plot.
pub struct Plot<'a> {
    pub title: String,
    /// What the axes are, said below the title.
    pub note: String,
    pub series: Vec<Line<'a>>,
}

/// One line: its name, and a cost for each size.
pub struct Line<'a> {
    pub label: &'a str,
    pub points: Vec<(f64, f64)>,
}

impl Plot<'_> {
    pub fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|line| &line.points);
        let x = Axis::around(all().map(|point| point.0), FRAME.left, FRAME.right);
        let y = Axis::around(all().map(|point| point.1), FRAME.bottom, FRAME.top);
        let mut body = String::new();
        for power in x.decades() {
            let at = x.place(power);
            body += &rule(at, FRAME.bottom, at, FRAME.top);
            body += &label(at, FRAME.bottom + 18.0, "middle", "#444", &short(power));
        }
        for power in y.decades() {
            let at = y.place(power);
            body += &rule(FRAME.left, at, FRAME.right, at);
            body += &label(FRAME.left - 8.0, at + 4.0, "end", "#444", &short(power));
        }
        body += &proportional(&x, &y);
        for (index, line) in self.series.iter().enumerate() {
            let fill = colour(line.label);
            let at = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
            let path: Vec<String> =
                line.points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            body += &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{fill}\" stroke-width=\"2\"/>\n",
                path.join(" ")
            );
            for (x, y) in line.points.iter().map(at) {
                body += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\"/>\n");
            }
            let top = FRAME.top + 16.0 + index as f64 * 18.0;
            body += &format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{fill}\"/>\n",
                FRAME.right + 16.0,
                top - 10.0
            );
            body += &label(FRAME.right + 34.0, top, "start", "#222", line.label);
        }
        picture(FRAME.bottom + 40.0, &self.title, &self.note, &body)
    }
}

/// Powers of ten between two places of the picture.
struct Axis {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min).max(1.0).log10().floor();
        let high = values.fold(1.0, f64::max).log10().ceil();
        let low = if low.is_finite() { low as i32 } else { 0 };
        Axis { low, high: (high as i32).max(low + 1), from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share =
            (value.max(1.0).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|power| 10f64.powi(power))
    }
}

/// From the lower left, as steep as what doubles when its cause does.
fn proportional(x: &Axis, y: &Axis) -> String {
    let decades = (x.high - x.low).min(y.high - y.low);
    let (end_x, end_y) =
        (x.place(10f64.powi(x.low + decades)), y.place(10f64.powi(y.low + decades)));
    rule(FRAME.left, FRAME.bottom, end_x, end_y)
        .replace("#ddd", "#bbb")
        .replace("/>", " stroke-dasharray=\"5 4\"/>")
}

fn rule(x1: f64, y1: f64, x2: f64, y2: f64) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>\n")
}

fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{} G", thousands((n / 1e9) as u64)),
        n if n >= 1e6 => format!("{} M", thousands((n / 1e6) as u64)),
        n if n >= 1e3 => format!("{} k", thousands((n / 1e3) as u64)),
        n => thousands(n as u64),
    }
}

/// Where the axes begin and end in the picture.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

const FRAME: Frame = Frame { left: 70.0, right: 660.0, top: 66.0, bottom: 380.0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_is_as_long_everywhere() {
        let axis = Axis::around([3.0, 800.0].into_iter(), 0.0, 300.0);
        assert_eq!([1.0, 10.0, 100.0, 1000.0].map(|it| axis.place(it)), [0.0, 100.0, 200.0, 300.0]);
    }

    #[test]
    fn every_point_and_name_is_drawn() {
        let line = Line { label: "trunkline", points: vec![(1.0, 10.0), (100.0, 10_000.0)] };
        let svg = Plot { title: "t".into(), note: "n".into(), series: vec![line] }.svg();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("trunkline") && svg.contains("10 k"), "{svg}");
    }
}

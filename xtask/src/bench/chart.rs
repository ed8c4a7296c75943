//! Figures in groups → bars in an SVG that needs nothing else to be seen.

use super::svg::{colour, label, picture};

/// Bars of one chart, lying, in groups.
pub struct Chart {
    pub title: String,
    /// What a bar of length one means, said below the title.
    pub note: String,
    pub groups: Vec<Group>,
}

/// Bars that belong together.
pub struct Group {
    pub name: String,
    pub bars: Vec<Bar>,
}

/// One figure.
pub struct Bar {
    pub label: &'static str,
    pub value: f64,
    /// What is written at its end.
    pub text: String,
    /// Where it is meant to reach, or not to pass.
    pub target: Option<f64>,
}

impl Chart {
    pub fn svg(&self) -> String {
        const LEFT: f64 = 270.0;
        const HEIGHT: f64 = 14.0;
        const STEP: f64 = 18.0;
        let all = self.groups.iter().flat_map(|group| &group.bars);
        let longest = all.map(|bar| bar.value.max(bar.target.unwrap_or(0.0))).fold(1.0, f64::max);
        // The longest bar leaves room for the text at its end.
        let scale = 480.0 / longest;
        let mut y = 90.0;
        let mut body = String::new();
        for group in &self.groups {
            let middle = y + group.bars.len() as f64 * STEP / 2.0 + 2.0;
            body += &label(LEFT - 12.0, middle, "end", "#222", &group.name);
            for bar in &group.bars {
                let width = (bar.value * scale).max(0.5);
                body += &format!(
                    "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{}\"/>\n",
                    colour(bar.label)
                );
                body += &label(LEFT + width + 6.0, y + HEIGHT - 3.0, "start", "#444", &bar.text);
                if let Some(target) = bar.target {
                    let x = LEFT + target * scale;
                    body += &format!(
                        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#c00\" stroke-width=\"2\"/>\n",
                        y - 2.0,
                        y + HEIGHT + 2.0
                    );
                }
                y += STEP;
            }
            y += 12.0;
        }
        picture(y + 8.0, &self.title, &self.note, &(self.legend() + &body))
    }

    fn legend(&self) -> String {
        let mut seen: Vec<&str> = Vec::new();
        for bar in self.groups.iter().flat_map(|group| &group.bars) {
            if !seen.contains(&bar.label) {
                seen.push(bar.label);
            }
        }
        let mut out = String::new();
        let mut x = 16.0;
        for name in seen {
            out += &format!(
                "<rect x=\"{x}\" y=\"58\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                colour(name)
            );
            out += &label(x + 18.0, 68.0, "start", "#222", name);
            x += 120.0;
        }
        out += &format!(
            "<line x1=\"{x}\" x2=\"{x}\" y1=\"56\" y2=\"72\" stroke=\"#c00\" stroke-width=\"2\"/>\n"
        );
        out + &label(x + 8.0, 68.0, "start", "#222", "target")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_and_its_target_are_drawn() {
        let bar = |label, value, target| Bar { label, value, text: format!("{value}"), target };
        let bars = vec![bar("bare", 1.0, None), bar("trunkline", 0.5, Some(0.75))];
        let group = Group { name: "one & two".into(), bars };
        let svg = Chart { title: "t".into(), note: "n".into(), groups: vec![group] }.svg();
        assert!(svg.contains("one &amp; two"), "{svg}");
        assert!(svg.contains("width=\"480.0\" height=\"14\""), "the longest bar is full: {svg}");
        assert!(svg.contains("width=\"240.0\" height=\"14\""), "half of it is half as long: {svg}");
        assert!(svg.contains("x1=\"630.0\""), "the target stands at three quarters: {svg}");
    }
}

//! What charts and plots are drawn with.

/// The SVG of a body that is so high, below its title and its note.
pub fn picture(height: f64, title: &str, note: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}{}{body}</svg>\n",
        label(16.0, 26.0, "start", "#000", title)
            .replace("<text", "<text font-size=\"16\" font-weight=\"bold\""),
        label(16.0, 46.0, "start", "#444", note)
    )
}

pub fn label(x: f64, y: f64, anchor: &str, fill: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>\n"
    )
}

pub fn colour(name: &str) -> &'static str {
    match name {
        "bare" | "bare, 2025-11-25" => "#9aa5b1",
        "bare gateway" | "bare, 2026-07-28" => "#57606a",
        "trunkline" | "trunkline, 2025-11-25" => "#1f6feb",
        "trunkline stdio" | "trunkline, 2026-07-28" => "#8ab4f8",
        "gateway" => "#2da44e",
        "bare stdio" => "#c8ced5",
        "rmcp" => "#e0803a",
        _ => "#6b8e23",
    }
}

const WIDTH: f64 = 860.0;

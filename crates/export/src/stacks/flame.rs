//! A flame graph as SVG: each path is a box as wide as its share, what it is inside of lies below.
//!
//! Pointing at a box shows its name, sum and share. A script in the file, which needs no network, searches names
//! and zooms into a box; without it the picture is the same. What is too narrow to be seen even then is left out,
//! and how much that is stands in the picture.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Weight;
use super::paths::{Node, Paths};
use hetrace_trace::text::{bytes, count, duration};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const TOP: f64 = 52.0;
/// Narrower boxes are left out.
const NARROWEST: f64 = 0.02;
/// Width of a letter of 12 pixels, about.
const LETTER: f64 = 7.3;

/// Letters of the title, beside which search and zoom have their places.
const TITLE: usize = 60;

/// Search and zoom.
const SCRIPT: &str = include_str!("flame.js");

/// Draws all paths.
pub(super) fn draw(paths: &Paths, title: &str, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    let totals = paths.totals();
    let total = |node: Node| totals.get(node as usize).copied().unwrap_or(0);
    let all = total(0);
    let order = paths.in_order();
    let scale = if all > 0 { WIDTH / all as f64 } else { 0.0 };
    let seen = |node: &&Node| total(**node) as f64 * scale >= NARROWEST;
    let rows = order.iter().filter(seen).map(|node| paths.depth(*node)).max().unwrap_or(0);
    let height = TOP + f64::from(rows) * ROW + 6.0;
    let narrow = order.iter().filter(|node| !seen(node) && total(**node) > 0).count();
    let left_out = match narrow {
        0 => String::new(),
        n => format!(" ({n} narrower than {NARROWEST} px are not drawn)"),
    };
    let mut svg = String::new();
    begin(&mut svg, height, &format!("{}: {}{left_out}", cut(title, TITLE), amount(all, weight)));
    // Where the next box of each depth begins: the first one inside where the one around does.
    let mut next = vec![0.0_f64; 2];
    for node in &order {
        let depth = paths.depth(*node) as usize;
        if next.len() < depth + 2 {
            next.resize(depth + 2, 0.0);
        }
        let (x, width) = (next[depth], total(*node) as f64 * scale);
        next[depth] = x + width;
        next[depth + 1] = x;
        if width < NARROWEST {
            continue;
        }
        let y = height - 6.0 - depth as f64 * ROW;
        let name = paths.name(*node);
        let share = total(*node) as f64 * 100.0 / all as f64;
        let _ = write!(
            svg,
            "<g><title>{} ({}, {share:.2} %)</title>\
             <rect x=\"{x:.4}\" y=\"{y:.1}\" width=\"{width:.4}\" height=\"{:.1}\" rx=\"1\" fill=\"{}\" \
             stroke=\"#fff\" stroke-width=\".5\"/>",
            escaped(name),
            amount(total(*node), weight),
            ROW - 1.0,
            colour(name, depth)
        );
        let letters = ((width - 6.0) / LETTER) as usize;
        if letters >= 3 {
            let _ =
                write!(svg, "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>", x + 3.0, y + 12.0, fit(name, letters));
        }
        svg.push_str("</g>\n");
        if svg.len() > 64 * 1024 {
            out.write_all(svg.as_bytes())?;
            svg.clear();
        }
    }
    let _ = write!(svg, "<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n");
    out.write_all(svg.as_bytes())?;
    out.flush()
}

/// Writes what stands before the boxes; the script fills in what is empty.
fn begin(svg: &mut String, height: f64, title: &str) {
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"6\" y=\"20\" font-size=\"14\">{title}</text>\n\
         <text id=\"about\" x=\"6\" y=\"40\"></text>\n\
         <text id=\"reset\" x=\"900\" y=\"20\" fill=\"#06c\" style=\"cursor:pointer\"></text>\n\
         <text id=\"search\" x=\"1000\" y=\"20\" fill=\"#06c\" style=\"cursor:pointer\"></text>\n\
         <text id=\"found\" x=\"1060\" y=\"20\"></text>"
    );
}

/// Returns whether a frame is of the program's code: `function (file:line)`, or `function (library)`.
fn is_code(name: &str) -> bool {
    name.ends_with(')') && name.contains(" (")
}

/// Processes and threads are grey, devices green, the program's code yellow, calls of one API alike.
fn colour(name: &str, depth: usize) -> String {
    let hash = |text: &str| text.bytes().fold(0_u32, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let light = 62 + hash(name) % 14;
    if name.starts_with("[device] ") {
        return format!("hsl(130,45%,{light}%)");
    }
    if is_code(name) {
        return format!("hsl(48,80%,{light}%)");
    }
    match name.split_once(':') {
        Some((api, _)) => format!("hsl({},70%,{light}%)", hash(api) % 70 * 47 % 70),
        None => format!("hsl(220,{}%,80%)", 10 + depth % 2 * 8),
    }
}

/// A sum with its unit.
fn amount(sum: u128, weight: Weight) -> String {
    let sum = u64::try_from(sum).unwrap_or(u64::MAX);
    match weight {
        Weight::Time | Weight::Device | Weight::Cpu => duration(sum),
        Weight::Calls => format!("{} calls", count(sum)),
        Weight::Bytes => bytes(sum),
    }
}

/// The whole name, else without its API, else its beginning.
fn fit(name: &str, letters: usize) -> String {
    let name = match name.split_once(':') {
        Some((_, bare)) if !is_code(name) && name.chars().count() > letters && !bare.starts_with(' ') => bare,
        _ => name,
    };
    cut(name, letters)
}

fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return escaped(text);
    }
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    escaped(&kept) + "…"
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no other control characters.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_have_a_colour() {
        for name in [
            "f (a.py:3)",
            "toy:a",
            "toy:toyFinish",
            "an API of a very long name:call",
            ":",
            "thread [1]",
            "[device] copy",
        ] {
            assert!(colour(name, usize::MAX).starts_with("hsl("), "{name}");
        }
    }
}

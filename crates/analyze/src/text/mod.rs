//! Words and tables that reports share.

mod style;
mod table;
mod units;

pub(crate) use style::Style;
pub(crate) use table::{Column, Table};
pub(crate) use units::{bandwidth, bytes, count, duration, duration_f, percent};

/// `1 thread`, `2 threads`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    let many = match one {
        "process" => "processes".to_owned(),
        _ => format!("{one}s"),
    };
    format!("{} {}", count(n), if n == 1 { one } else { &many })
}

/// How an API is spelled in headings, by the name of its folder.
pub(crate) fn api_title(name: &str) -> String {
    // Spelling only: an API that is not here is shown by its own name.
    const SPELLINGS: [(&str, &str); 4] =
        [("opencl", "OpenCL"), ("opengl", "OpenGL"), ("openmp", "OpenMP"), ("level-zero", "Level Zero")];
    match SPELLINGS.iter().find(|(folder, _)| *folder == name) {
        Some((_, title)) => (*title).to_owned(),
        None if name.len() <= 4 => name.to_uppercase(),
        None => name.to_owned(),
    }
}

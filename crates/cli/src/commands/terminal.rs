//! What the terminal is like.

use std::io::IsTerminal;

/// Returns whether to use colour on a stream.
pub fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns for text on a stream: those that `COLUMNS` says, or those of the terminal behind it; nothing if it is none.
pub fn columns(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return asked_columns();
    }
    size(stream).map(|(columns, _)| columns)
}

/// Whether the locale has only the characters of ASCII: it is set, and not to UTF-8. Where nothing is set, as in most
/// containers, nothing says so.
pub fn is_ascii() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Columns and lines of the terminal behind a stream; nothing if it is none. `COLUMNS` and `LINES` come first.
pub fn size(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<(usize, usize)> {
    if !stream.is_terminal() {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok().filter(|n| *n > 0);
    let size = rustix::termios::tcgetwinsize(stream).ok();
    let of = |n: fn(&rustix::termios::Winsize) -> u16| size.as_ref().map(|size| usize::from(n(size)));
    let columns = number("COLUMNS").or(of(|size| size.ws_col)).filter(|n| *n > 0);
    let lines = number("LINES").or(of(|size| size.ws_row)).filter(|n| *n > 0);
    // What a terminal has that does not say its size.
    Some((columns.unwrap_or(80), lines.unwrap_or(24)))
}

/// Columns that text has in a file or a pipe: those that `COLUMNS` says, or as many as it takes.
pub fn asked_columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0)
}

//! What the terminal is like.

use std::io::IsTerminal;

/// Returns whether to use colour on a stream.
pub fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of the terminal behind a stream; nothing if it is none.
pub fn columns(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
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

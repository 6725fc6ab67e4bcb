//! Standard output of commands that read: it may be a pipe which is read slowly,
//! or no more.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use hetrace_trace::Stopped;

use super::{terminal, watch};

/// Standard output without a buffer. A write that waits for the reader of a pipe
/// ends when Ctrl-C asks to stop; its error is [`Stopped`] then.
#[derive(Debug)]
pub struct Output {
    to: File,
    /// Whether anything was written.
    pub used: bool,
    /// It is text for people whose locale has only ASCII.
    ascii: bool,
}

impl Output {
    /// # Errors
    /// When there is no standard output.
    pub fn new() -> io::Result<Self> {
        Ok(Self { to: io::stdout().as_fd().try_clone_to_owned()?.into(), used: false, ascii: false })
    }

    /// The same for text: whole lines at a time.
    pub fn of_text() -> io::Result<Self> {
        Ok(Self { ascii: terminal::is_ascii(), ..Self::new()? })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if watch::asked_to_stop() {
            return Err(io::Error::other(Stopped));
        }
        self.used = true;
        if self.ascii
            && let Ok(text) = str::from_utf8(bytes)
        {
            // As a whole, since a part of it is no part of `bytes`.
            self.to.write_all(ascii(text).as_bytes())?;
            return Ok(bytes.len());
        }
        // Interrupted, it comes here again.
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a report for people, in the characters that their locale has.
///
/// # Errors
/// That of standard output.
pub fn write_text(report: &str) -> anyhow::Result<()> {
    match terminal::is_ascii() {
        true => write(&ascii(report)),
        false => write(report),
    }
}

/// Writes a report, for programs as it is.
///
/// # Errors
/// That of standard output.
pub fn write_report(report: &str, is_for_programs: bool) -> anyhow::Result<()> {
    if is_for_programs { write(report) } else { write_text(report) }
}

/// The same text with characters of ASCII for those that hetrace uses besides; what others wrote stays. A cell of a
/// table stays as wide as it was, where there is room beside it.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    // Spaces of padding that make room for a longer text.
    let mut owed = 0_usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let (short, long) = match c {
            'µ' | 'μ' => ("u", "u"),
            '→' => (">", "->"),
            '←' => ("<", "<-"),
            // A name that was cut.
            '…' if !before.is_whitespace() => ("~", "~"),
            '…' => (".", "..."),
            '±' => ("+-", "+-"),
            '≤' => ("<=", "<="),
            '≥' => (">=", ">="),
            '×' | '✕' => ("x", "x"),
            '·' | '•' => (".", "."),
            '–' | '—' | '−' => ("-", "-"),
            '│' | '┃' => ("|", "|"),
            '─' | '━' => ("-", "-"),
            '█' | '▓' | '▒' | '░' | '▇' | '▆' | '▅' | '▄' | '▃' | '▂' | '▁' => {
                ("#", "#")
            }
            ' ' if owed > 0 && before == ' ' => {
                owed -= 1;
                continue;
            }
            c => {
                if c == '\n' {
                    owed = 0;
                }
                before = c;
                out.push(c);
                continue;
            }
        };
        let in_table = before == ' ' && out.ends_with("  ");
        let with = if c == '→' && chars.peek() == Some(&' ') { short } else { long };
        // What is flush right has its room before it.
        if with.len() > 1 && in_table {
            out.pop();
        } else {
            owed += with.len() - 1;
        }
        out.push_str(with);
        before = c;
    }
    out
}

/// Writes a report.
///
/// # Errors
/// That of standard output.
pub fn write(report: &str) -> anyhow::Result<()> {
    Ok(Output::new()?.write_all(report.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_of_ascii_has_the_same_columns() {
        let table = "Name          |    Time |     ±\nread a → b    | 3.5 µs  | ±1.0%\nlong_na…      |   ≤5 ns |  ±10%\n";
        let ascii = ascii(table);
        assert!(ascii.is_ascii(), "{ascii}");
        assert_eq!(
            ascii,
            "Name          |    Time |    +-\nread a > b    | 3.5 us  | +-1.0%\nlong_na~      |  <=5 ns | +-10%\n"
        );
        assert_eq!(super::ascii("a, b, …; host clock error ≤ 5 ns"), "a, b, ...; host clock error <= 5 ns");
        assert_eq!(super::ascii("kernel Größe"), "kernel Größe", "names are the program's");
    }
}

//! The terminal, for what is drawn in place.
//!
//! It takes a dozen escape sequences that every terminal since the VT100 knows, and two of xterm (the other
//! screen, and that the cursor is hidden); so no library for whole screens is brought in.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Another screen, without a cursor, where lines that are too long are cut.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// And back.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Whether a signal asked to end.
static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// The whole terminal, until it is dropped.
#[derive(Debug)]
pub struct Screen {
    /// How keys were handled before, if they come from a terminal.
    keys: Option<Termios>,
}

impl Screen {
    /// Takes it.
    ///
    /// # Errors
    /// When it can't be written to.
    pub fn enter() -> io::Result<Self> {
        catch_signals();
        let stdin = io::stdin();
        let keys = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten();
        if let Some(before) = &keys {
            let mut now = before.clone();
            // Each key comes at once, Ctrl-C too, and none is shown.
            now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(&stdin, OptionalActions::Now, &now)?;
        }
        let screen = Self { keys };
        let mut out = io::stdout();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(screen)
    }

    /// Shows text in the place of what is there.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(&self, text: &str) -> io::Result<()> {
        let mut all = String::from("\x1b[H");
        for (at, line) in text.lines().enumerate() {
            let _ = write!(all, "{}{line}\x1b[K", if at > 0 { "\r\n" } else { "" });
        }
        all.push_str("\x1b[J");
        let mut out = io::stdout();
        out.write_all(all.as_bytes())?;
        out.flush()
    }

    /// Waits. Returns whether it is to end: by `q`, Ctrl-C, or a signal.
    pub fn wait(&self, time: Duration) -> bool {
        let stdin = io::stdin();
        let begun = Instant::now();
        loop {
            if ASKED.load(Ordering::Relaxed) {
                return true;
            }
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            if self.keys.is_none() {
                std::thread::sleep(left.min(Duration::from_millis(100)));
                continue;
            }
            let limit = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut fds, limit.as_ref()) {
                Ok(n) if n > 0 => {
                    let mut keys = [0; 64];
                    match rustix::io::read(&stdin, &mut keys) {
                        Ok(n) if n > 0 => {
                            let ends = |key: &u8| matches!(key, b'q' | b'Q' | 0x03 | 0x04);
                            if keys.get(..n).unwrap_or_default().iter().any(ends) {
                                return true;
                            }
                        }
                        // The terminal is gone.
                        _ => return true,
                    }
                }
                _ => {}
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        if let Some(before) = &self.keys {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Signals that would end this process ask it to end instead, so that the terminal is restored.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all bit patterns of a sigaction are valid, and the handler only stores to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ask as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Returns whether a signal asked to end, after [`catch_signals`].
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// The last lines of the terminal behind stderr; a program that writes to it scrolls in those above.
#[derive(Debug, Default)]
pub struct Bottom {
    /// Lines of the terminal, and of these ours.
    taken: Option<(usize, usize)>,
}

impl Bottom {
    /// Shows text in them. They are as many as the first text has lines, or the terminal room for.
    pub fn show(&mut self, text: &str, (lines, own): (usize, usize)) {
        let mut all = String::new();
        if self.taken != Some((lines, own)) {
            self.give_back(&mut all);
            // Makes room, and lets the program scroll in what is left: that moves the cursor, which is put back.
            let _ = write!(all, "{}\x1b[{own}A\x1b7\x1b[1;{}r\x1b8", "\n".repeat(own), lines - own);
            self.taken = Some((lines, own));
        }
        let _ = write!(all, "\x1b7\x1b[?7l\x1b[{};1H", lines - own + 1);
        let mut shown = text.lines();
        for at in 0..own {
            let end = if at + 1 < own { "\r\n" } else { "" };
            let _ = write!(all, "{}\x1b[K{end}", shown.next().unwrap_or_default());
        }
        all.push_str("\x1b[?7h\x1b8");
        // In one piece, so that nothing of the program comes between.
        let _ = io::stderr().lock().write_all(all.as_bytes());
    }

    fn give_back(&mut self, to: &mut String) {
        if let Some((lines, own)) = self.taken.take() {
            let _ = write!(to, "\x1b7\x1b[r\x1b[{};1H\x1b[J\x1b8", lines - own + 1);
        }
    }

    /// Gives them back.
    pub fn end(&mut self) {
        let mut all = String::new();
        self.give_back(&mut all);
        let _ = io::stderr().lock().write_all(all.as_bytes());
    }
}

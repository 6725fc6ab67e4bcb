//! Colours, or none.

/// Writes text in colours if a terminal is to show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    pub colour: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
}

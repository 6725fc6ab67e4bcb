//! Arguments of a slice.

use super::names::{Names, Of};
use super::packets::field::{annotation, event};
use super::proto::Message;
use hetrace_trace::args::{Args, Role, Typed};
use hetrace_trace::spans::notable;
use hetrace_trace::stacks::{Frame, StackId, Stacks};

/// Longer texts are cut: they are to be read in a side panel.
const MAX_TEXT: usize = 256;

/// Numbers of a list that are annotated as such.
const LISTED: usize = 16;

/// The numbers of a short list of them, `[256, 4]`; none of all else.
fn listed(text: &str) -> Option<Vec<u64>> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    if !inside.starts_with(|c: char| c.is_ascii_digit()) || inside.len() > LISTED * 22 {
        return None;
    }
    let numbers: Option<Vec<u64>> = inside.split(", ").map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() <= LISTED)
}

/// Annotations gathered for one event, as its fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations {
    message: Message,
    /// Names of annotations, and of all else that is named by number.
    pub names: Names,
}

impl Annotations {
    pub fn clear(&mut self) {
        self.message.clear();
    }

    /// The bytes, to be put into a track event.
    pub fn bytes(&self) -> &[u8] {
        self.message.bytes()
    }

    fn add(&mut self, name: &str, value: impl FnOnce(&mut Message)) {
        let number = self.names.number(Of::Annotation, name);
        self.message.message(event::ANNOTATION, |m| {
            match number {
                0 => m.string(annotation::NAME_ITSELF, name),
                number => m.varint(annotation::NAME, number),
            }
            value(m);
        });
    }

    pub fn text(&mut self, name: &str, text: &str) {
        let long = text.len() > MAX_TEXT;
        let end = if long { text.char_indices().nth(MAX_TEXT).map(|(at, _)| at) } else { None };
        self.add(name, |m| match end {
            None => m.string(annotation::STRING, text),
            Some(end) => m.string(annotation::STRING, &format!("{}…", &text[..end])),
        });
    }

    /// The code that made a call: the innermost frame, and those around it.
    pub fn stack(&mut self, stacks: &Stacks, stack: StackId) {
        if stack.python != 0 {
            self.frames(["python", "python_callers"], &stacks.python_frames(stack));
        }
        if stack.native != 0 {
            self.frames(["stack", "stack_callers"], &stacks.frames(stack));
        }
    }

    fn frames(&mut self, [name, callers]: [&str; 2], frames: &[&Frame]) {
        let Some((innermost, around)) = frames.split_first() else { return };
        self.text(name, &innermost.to_string());
        // More would be cut.
        let around: Vec<String> = around.iter().take(MAX_TEXT / 8).map(ToString::to_string).collect();
        if !around.is_empty() {
            self.text(callers, &around.join(" < "));
        }
    }

    pub fn number(&mut self, name: &str, number: u64) {
        self.add(name, |m| m.varint(annotation::UINT, number));
    }

    /// Numbers, each of which a query finds as `name[0]` and so on.
    pub fn numbers(&mut self, name: &str, numbers: &[u64]) {
        self.add(name, |m| {
            for number in numbers {
                m.message(annotation::ARRAY, |m| m.varint(annotation::UINT, *number));
            }
        });
    }

    pub fn signed(&mut self, name: &str, number: i64) {
        self.add(name, |m| m.varint(annotation::INT, number as u64));
    }

    pub fn pointer(&mut self, name: &str, address: u64) {
        self.add(name, |m| m.varint(annotation::POINTER, address));
    }

    pub fn float(&mut self, name: &str, number: f64) {
        self.add(name, |m| m.double(annotation::DOUBLE, number));
    }

    /// What of a slice's time is the tracer's own, where it matters.
    pub fn tracing(&mut self, cost: u64, time: u64) {
        if let Some(cost) = notable(cost, time) {
            self.number("tracing_ns", cost);
        }
    }

    /// All arguments of a call's entry or exit.
    pub fn args(&mut self, args: &Args<'_>) {
        for piece in &args.pieces {
            let name = if piece.role == Role::Return { "result" } else { piece.name };
            match piece.typed {
                Some(Typed::Unsigned(v)) => self.number(name, v),
                Some(Typed::Signed(v)) => self.signed(name, v),
                Some(Typed::Pointer(v)) => self.pointer(name, v),
                Some(Typed::Float(v)) => self.float(name, v),
                None => match listed(args.of(piece)) {
                    Some(numbers) => self.numbers(name, &numbers),
                    None => self.text(name, args.of(piece)),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_numbers() {
        assert_eq!(listed("[256, 4]"), Some(vec![256, 4]));
        assert_eq!(listed("[7]"), Some(vec![7]));
        for text in ["[]", "[0x10]", "[10 89]", "7", "[CL_R]", "[{a=1}]", "[1, …]"] {
            assert_eq!(listed(text), None, "{text}");
        }
    }
}

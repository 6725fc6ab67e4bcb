//! Events that later ones need to be understood, whenever they were recorded: what every part of a trace keeps of the
//! time before it. `edit` knows them by their names in a trace, the launcher by their numbers before there is one.

use crate::calls::{self, BUDGET_STEP, BUDGET_STEP_ID, ERROR_TEXT, ERROR_TEXT_ID};
use crate::class::{DEVICE_STREAM, device_event};
use crate::define::Definition;
use crate::object::ObjectKind;
use crate::sample;
use crate::telemetry::{self, Monitored};

/// Returns whether an event of this name says what others mean.
pub fn defines(name: &str) -> bool {
    Definition::of_event(name).is_some() || name == Monitored::EVENT || name.ends_with(ERROR_TEXT)
}

/// Returns whether from an event of this name on a thread records otherwise, to keep within its budget.
pub fn is_step(name: &str) -> bool {
    name.ends_with(BUDGET_STEP)
}

/// Returns whether the event of a number in a stream class is one of both, or shows an object that later events name.
pub fn is_lasting(stream: u32, id: u16) -> bool {
    match stream {
        DEVICE_STREAM => {
            let object = ObjectKind::ALL.into_iter().find(|kind| kind.id() == id);
            object.is_some_and(describes) || device_event(id, &[]).is_some_and(|class| defines(&class.name))
        }
        telemetry::STREAM => id == Monitored::ID,
        _ => id == ERROR_TEXT_ID || id == BUDGET_STEP_ID,
    }
}

/// What an object is, not what a launch found in it.
fn describes(kind: ObjectKind) -> bool {
    use ObjectKind::{Buffer, LaunchArgs, NotCaptured, Sent, Truncated};
    !matches!(kind, Buffer | LaunchArgs | NotCaptured | Sent | Truncated)
}

/// What of a call an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPart {
    /// It begins.
    Entry(usize),
    /// It ends.
    Exit(usize),
}

/// Returns the part of a call, and its function in the model, that a number in an API's stream stands for; none for
/// what is no call, or a run of them in one event.
pub fn call_part(stream: u32, id: u16) -> Option<CallPart> {
    if stream == DEVICE_STREAM || stream == telemetry::STREAM || stream == sample::STREAM {
        return None;
    }
    let function = calls::function_of(id)?;
    match id - calls::entry_id(function) {
        0 => Some(CallPart::Entry(function)),
        1 => Some(CallPart::Exit(function)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for id in 0..=u16::MAX {
            let Some(class) = device_event(id, &[]) else { continue };
            let object = class.name.starts_with("object:");
            assert!(object || is_lasting(DEVICE_STREAM, id) == defines(&class.name), "{}", class.name);
        }
        assert!(is_lasting(DEVICE_STREAM, ObjectKind::Source.id()));
        assert!(!is_lasting(DEVICE_STREAM, ObjectKind::Buffer.id()));
        assert!(is_lasting(telemetry::STREAM, Monitored::ID) && is_lasting(1, ERROR_TEXT_ID));
        assert!(is_step("toy:budget_step") && is_lasting(1, BUDGET_STEP_ID));
        assert!(!is_lasting(1, calls::UNKNOWN_ID) && !is_lasting(1, calls::entry_id(0)));
    }

    #[test]
    fn calls_have_two_parts() {
        let entry = calls::entry_id(7);
        assert_eq!(call_part(1, entry), Some(CallPart::Entry(7)));
        assert_eq!(call_part(1, entry + 1), Some(CallPart::Exit(7)));
        assert_eq!(call_part(1, entry + 2), None);
        assert_eq!(call_part(1, ERROR_TEXT_ID), None);
        assert_eq!(call_part(DEVICE_STREAM, entry), None);
    }
}

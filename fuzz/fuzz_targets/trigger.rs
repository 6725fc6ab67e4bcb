//! Any text as a trigger: refused with a message, or an expression that is written as it is read.
#![no_main]

use hetrace_session::trigger::Trigger;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Trigger>() {
        Ok(trigger) => {
            let written = trigger.to_string();
            // It may have become too long, as it has all parentheses.
            if let Ok(again) = written.parse::<Trigger>() {
                assert_eq!(again.to_string(), written);
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 3, "{error}"),
    }
});

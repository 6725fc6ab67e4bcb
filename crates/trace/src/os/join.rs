//! Whether two traces have one clock.

use hetrace_ctf::class::ClockClass;

use crate::trace::Trace;

/// Why a kernel trace does not belong to a program's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotJoined {
    /// One of them has no clock, or none with an identity.
    #[error(
        "one of the two traces does not say which clock its times are of, so they cannot be put on one time line"
    )]
    NoClock,
    /// They are of two machines, or of two times that one was on.
    #[error(
        "it was recorded on another machine, or in another boot of it (boot {kernel}, the program's {program})"
    )]
    OtherBoot {
        /// The boot that the kernel trace is of.
        kernel: String,
        /// That of the program's.
        program: String,
    },
    /// Another clock of the same machine.
    #[error("its times are of the clock {kernel:?}, those of the program of {program:?}")]
    OtherClock {
        /// The kernel trace's.
        kernel: String,
        /// The program's.
        program: String,
    },
    /// It has no events of the kernel's scheduler.
    #[error("it has no events of the operating system's scheduler (sched_switch)")]
    NoEvents,
}

/// Checks that times of both are of one clock of one machine since one boot: by the clock's identity,
/// which is the boot's, as LTTng's traces have it, and by its name.
///
/// # Errors
/// When they are not, or when one does not say.
pub fn join(program: &Trace, kernel: &Trace) -> Result<(), NotJoined> {
    let clock = |trace: &Trace| trace.ctf().class().clocks.first().cloned();
    let (Some(program), Some(kernel)) = (clock(program), clock(kernel)) else {
        return Err(NotJoined::NoClock);
    };
    alike(&program, &kernel)
}

fn alike(program: &ClockClass, kernel: &ClockClass) -> Result<(), NotJoined> {
    let (Some(of_program), Some(of_kernel)) = (identity(program), identity(kernel)) else {
        return Err(NotJoined::NoClock);
    };
    if of_program != of_kernel {
        return Err(NotJoined::OtherBoot { kernel: of_kernel, program: of_program });
    }
    if program.name != kernel.name {
        return Err(NotJoined::OtherClock { kernel: kernel.name.clone(), program: program.name.clone() });
    }
    Ok(())
}

fn identity(clock: &ClockClass) -> Option<String> {
    let bytes = clock.uuid?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_alike_by_boot_and_name() {
        let clock = |name: &str, uuid: Option<u8>| ClockClass {
            uuid: uuid.map(|byte| [byte; 16]),
            ..ClockClass::new(name, 1_000_000_000)
        };
        let own = clock("monotonic", Some(1));
        assert_eq!(alike(&own, &clock("monotonic", Some(1))), Ok(()));
        assert_eq!(alike(&own, &clock("monotonic", None)), Err(NotJoined::NoClock));
        let other = alike(&own, &clock("monotonic", Some(2))).unwrap_err().to_string();
        assert!(other.contains("another boot") && other.contains("0202"), "{other}");
        let other = alike(&own, &clock("tsc", Some(1))).unwrap_err().to_string();
        assert_eq!(other, r#"its times are of the clock "tsc", those of the program of "monotonic""#);
    }
}

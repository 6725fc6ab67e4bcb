//! System calls: two tracepoints for all of them, and an event for each in the trace.
//!
//! The kernel has a pair of tracepoints for each call, which would be 700 to open. So the two of all calls
//! are opened, and the descriptions of the pairs serve for names and types of arguments; each is read when
//! the first call of its kind comes.

use hetrace_ctf::class::{FieldClass, IntegerClass, StructClass};
use syscalls::Sysno;

use crate::hash::NumberMap;
use crate::layout::{Field, Form, Layout};
use crate::tracefs::Tracefs;

/// The system of the tracepoints of single calls.
const SYSTEM: &str = "syscalls";
/// The field that is no argument.
const NUMBER: &str = "__syscall_nr";
/// Most arguments of a call.
const MOST: usize = 6;

/// A kind of system call.
#[derive(Debug, Clone, PartialEq)]
pub struct Syscall {
    /// Its name, as the kernel's tracepoints have it; `openat`.
    pub name: String,
    /// Its arguments.
    pub arguments: StructClass,
    stored: Vec<Stored>,
}

/// How an argument is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// The lowest bytes of its register.
    Bytes(usize),
    /// The address as text.
    Address,
}

/// The field of an exit.
pub fn result() -> StructClass {
    StructClass::default().field("ret", IntegerClass::signed(64))
}

impl Syscall {
    /// Reads the arguments of a call from the description of its tracepoint.
    fn new(name: &str, layout: &Layout) -> Self {
        let mut call = Self { name: name.to_owned(), arguments: StructClass::default(), stored: Vec::new() };
        let arguments = layout.fields.iter().filter(|f| f.name != NUMBER && f.form == Form::Plain);
        for field in arguments.take(MOST) {
            if is_name(field) {
                call.stored.push(Stored::Address);
                call.arguments = std::mem::take(&mut call.arguments).field(&field.name, FieldClass::string());
            } else {
                call.argument(&field.name, argument_class(field));
            }
        }
        call
    }

    /// A call that nothing is known of but its name or number: six numbers.
    fn unknown(name: &str) -> Self {
        let mut call = Self { name: name.to_owned(), arguments: StructClass::default(), stored: Vec::new() };
        for n in 0..MOST {
            call.argument(&format!("arg{n}"), IntegerClass::unsigned(64).hex());
        }
        call
    }

    fn argument(&mut self, name: &str, class: IntegerClass) {
        self.stored.push(Stored::Bytes(class.size as usize / 8));
        self.arguments = std::mem::take(&mut self.arguments).field(name, class);
    }

    /// Appends the arguments of a call, of which these are the registers.
    pub fn encode(&self, registers: &[u8], into: &mut Vec<u8>) -> bool {
        let begin = into.len();
        let mut registers = registers.chunks_exact(8);
        for stored in &self.stored {
            let Some(register) = registers.next().and_then(|r| <[u8; 8]>::try_from(r).ok()) else {
                into.truncate(begin);
                return false;
            };
            let register = u64::from_ne_bytes(register);
            match stored {
                Stored::Bytes(size) => into.extend_from_slice(&register.to_le_bytes()[..*size]),
                Stored::Address => into.extend_from_slice(format!("{register:#x}\0").as_bytes()),
            }
        }
        true
    }
}

/// Returns whether an argument is the name of a file, say. Where LTTng has the name itself, readers of its
/// traces expect a text. The kernel's record has the address only, so the text is that.
fn is_name(field: &Field) -> bool {
    field.c_type == "const char *" && field.name != "buf"
}

/// Returns how an argument is stored: as wide as its type in C, though its register is wider.
fn argument_class(field: &Field) -> IntegerClass {
    let c_type = field.c_type.trim_start_matches("const ");
    match c_type {
        _ if c_type.ends_with('*') => IntegerClass::unsigned(64).hex(),
        "int" | "pid_t" | "clockid_t" | "key_t" | "mqd_t" | "timer_t" | "key_serial_t" | "s32" | "rwf_t" => {
            IntegerClass::signed(32)
        }
        "unsigned int" | "unsigned" | "uid_t" | "gid_t" | "u32" | "qid_t" => IntegerClass::unsigned(32),
        "umode_t" => IntegerClass::unsigned(16),
        "long" | "off_t" | "loff_t" | "ssize_t" => IntegerClass::signed(64),
        "size_t" | "u64" => IntegerClass::unsigned(64),
        _ => IntegerClass::unsigned(64).hex(),
    }
}

/// Which system calls there are, by number, and which are recorded.
pub struct Syscalls {
    known: NumberMap<i64, Option<Syscall>>,
    wanted: Box<dyn Fn(&str) -> bool + Send>,
}

impl std::fmt::Debug for Syscalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Syscalls").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Syscalls {
    /// Records the calls whose names are wanted.
    pub fn new(wanted: Box<dyn Fn(&str) -> bool + Send>) -> Self {
        Self { known: NumberMap::default(), wanted }
    }

    /// Returns the call of a number; none if it is not recorded.
    pub fn get(&mut self, number: i64, tracefs: &Tracefs) -> Option<&Syscall> {
        let Self { known, wanted } = self;
        let call = known.entry(number).or_insert_with(|| {
            let call = describe(number, tracefs);
            Some(call).filter(|call| wanted(&call.name))
        });
        call.as_ref()
    }
}

/// Returns the names that the kernel's tracepoints may have for a call: some calls replaced older ones
/// and go by the older name outside of the kernel.
fn kernel_names(name: &str) -> [String; 4] {
    [name.to_owned(), format!("new{name}"), format!("{name}64"), name.trim_end_matches('2').to_owned()]
}

fn describe(number: i64, tracefs: &Tracefs) -> Syscall {
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    let Some(name) = known.map(|call| call.name()) else {
        return Syscall::unknown(&format!("unknown_{number}"));
    };
    for name in kernel_names(name) {
        if let Ok(Some(layout)) = tracefs.layout(SYSTEM, &format!("sys_enter_{name}")) {
            return Syscall::new(&name, &layout);
        }
    }
    Syscall::unknown(name)
}

/// Returns the numbers of the calls that are wanted; none if these are more than a few, as each is a comparison
/// that the kernel makes.
pub fn few(wanted: &dyn Fn(&str) -> bool) -> Option<Vec<i32>> {
    let numbers: Vec<i32> =
        Sysno::iter().filter(|call| is_wanted(*call, wanted)).map(|call| call.id()).collect();
    (1..=MOST_TERMS).contains(&numbers.len()).then_some(numbers)
}

/// Returns an expression over `id` by which perf passes on these calls.
pub fn filter(numbers: &[i32]) -> String {
    numbers.iter().map(|number| format!("id == {number}")).collect::<Vec<_>>().join(" || ")
}

/// Returns whether any system call of this processor is wanted.
pub fn any(wanted: &dyn Fn(&str) -> bool) -> bool {
    Sysno::iter().any(|call| is_wanted(call, wanted))
}

fn is_wanted(call: Sysno, wanted: &dyn Fn(&str) -> bool) -> bool {
    kernel_names(call.name()).iter().any(|name| wanted(name))
}

/// Most comparisons of a filter.
const MOST_TERMS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_as_wide_as_their_types() {
        let layout = Layout::parse(
            "name: sys_enter_openat\nID: 1\nformat:\n\
             field:int __syscall_nr;offset:8;size:4;signed:1;\n\
             field:int dfd;offset:16;size:8;signed:0;\n\
             field:const char * filename;offset:24;size:8;signed:0;\n\
             field:umode_t mode;offset:32;size:8;signed:0;\n",
        );
        let call = Syscall::new("openat", &layout.unwrap());
        let names: Vec<&str> = call.arguments.fields.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["dfd", "filename", "mode"]);
        let registers = [-100i64 as u64, 0x1234, 0o644, 9, 9, 9].map(u64::to_ne_bytes).concat();
        let mut bytes = Vec::new();
        assert!(call.encode(&registers, &mut bytes));
        let expected = [&(-100i32).to_le_bytes()[..], b"0x1234\0", &0o644u16.to_le_bytes()].concat();
        assert_eq!(bytes, expected);
        assert!(!call.encode(&registers[..16], &mut bytes));
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_kernel_filters_a_few_calls() {
        assert_eq!(few(&|name| name == "read"), Some(vec![Sysno::read.id()]));
        assert_eq!(few(&|_| true), None);
        assert_eq!(few(&|_| false), None);
        assert_eq!(filter(&[3, 5]), "id == 3 || id == 5");
    }

    #[test]
    fn a_call_is_wanted_by_any_of_its_names() {
        for name in ["read", "newuname", "uname", "openat"] {
            assert!(any(&|known| known == name), "{name}");
        }
        assert!(!any(&|known| known == "raed"));
    }
}

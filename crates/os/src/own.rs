//! Events of the program's own threads, where there are no tracepoints.
//!
//! They have names of their own: LTTng's `sched_switch` says which thread came instead, which an ordinary
//! user does not learn.

use hetrace_ctf::class::{FieldClass, IntegerClass, StructClass};

use crate::perf::record::{Record, What};

/// Kinds of events, in the order of their numbers here.
const KINDS: [&str; 5] =
    ["perf_thread_in", "perf_thread_out", "perf_thread_begin", "perf_thread_end", "perf_thread_name"];

/// Returns the name and the fields of each kind of event.
pub fn classes() -> [(&'static str, StructClass); KINDS.len()] {
    KINDS.map(|name| {
        let fields = StructClass::default();
        let fields = fields.field("tid", IntegerClass::signed(32)).field("pid", IntegerClass::signed(32));
        let fields = match name {
            // 1: it would have run on; 0: it waits for something.
            "perf_thread_out" => fields.field("preempted", IntegerClass::unsigned(8)),
            "perf_thread_begin" => fields
                .field("child_tid", IntegerClass::signed(32))
                .field("child_pid", IntegerClass::signed(32)),
            "perf_thread_name" => {
                fields.field("name", FieldClass::string()).field("exec", IntegerClass::unsigned(8))
            }
            _ => fields,
        };
        (name, fields)
    })
}

/// Returns which kind of event a record is; none if it is none of these.
pub fn kind(what: &What<'_>) -> Option<usize> {
    Some(match what {
        What::In => 0,
        What::Out { .. } => 1,
        What::Fork { .. } => 2,
        What::Exit => 3,
        What::Comm { .. } => 4,
        What::Sample(_) | What::Lost(_) => return None,
    })
}

/// Appends the fields of a record's event.
pub fn encode(record: &Record<'_>, into: &mut Vec<u8>) {
    into.extend_from_slice(&record.who.tid.to_le_bytes());
    into.extend_from_slice(&record.who.pid.to_le_bytes());
    match record.what {
        What::Out { preempted } => into.push(preempted.into()),
        What::Fork { child } => {
            into.extend_from_slice(&child.tid.to_le_bytes());
            into.extend_from_slice(&child.pid.to_le_bytes());
        }
        What::Comm { name, exec } => {
            into.extend_from_slice(name);
            into.extend_from_slice(&[0, exec.into()]);
        }
        What::In | What::Exit | What::Sample(_) | What::Lost(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::record::Who;

    #[test]
    fn a_record_is_as_long_as_its_class() {
        let who = Who { pid: 1, tid: 2 };
        for (what, extra) in [
            (What::In, &[][..]),
            (What::Out { preempted: true }, &[1]),
            (What::Fork { child: who }, &[2, 0, 0, 0, 1, 0, 0, 0]),
            (What::Exit, &[]),
            (What::Comm { name: b"ab", exec: true }, b"ab\0\x01"),
        ] {
            let mut bytes = Vec::new();
            encode(&Record { who, time: 0, what }, &mut bytes);
            assert_eq!(bytes, [&[2, 0, 0, 0, 1, 0, 0, 0][..], extra].concat());
            let (_, fields) = &classes()[kind(&what).unwrap()];
            assert_eq!(fields.fields.len() > 2, !extra.is_empty(), "{what:?}");
        }
        assert_eq!(kind(&What::Lost(1)), None);
    }
}

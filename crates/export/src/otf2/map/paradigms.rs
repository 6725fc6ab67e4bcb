//! Paradigms: what OTF2 calls the programming models that it knows.

use hetrace_trace::trace::Trace;

/// One that OTF2 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::otf2) struct Paradigm {
    /// OTF2's number.
    pub number: u8,
    pub name: &'static str,
    /// Whether it is of processes (0), threads that are forked and joined (1), threads that
    /// are created (2), or accelerators (3).
    pub class: u8,
}

/// Of an API that OTF2 does not know.
pub(in crate::otf2) const OTHER: Paradigm = Paradigm { number: 0, name: "other interfaces", class: 0 };
/// Of what programs say of themselves.
pub(in crate::otf2) const USER: Paradigm = Paradigm { number: 1, name: "user", class: 0 };

/// OTF2's own list, by its own names (`OTF2_PARADIGM_CUDA`). Which of them an API is, its
/// model says.
const TABLE: [(&str, Paradigm); 9] = [
    ("CUDA", Paradigm { number: 5, name: "CUDA", class: 3 }),
    ("HIP", Paradigm { number: 23, name: "HIP", class: 3 }),
    ("OPENCL", Paradigm { number: 19, name: "OpenCL", class: 3 }),
    ("OPENACC", Paradigm { number: 18, name: "OpenACC", class: 3 }),
    ("KOKKOS", Paradigm { number: 24, name: "Kokkos", class: 3 }),
    ("MPI", Paradigm { number: 4, name: "MPI", class: 0 }),
    ("SHMEM", Paradigm { number: 13, name: "SHMEM", class: 0 }),
    ("OPENMP", Paradigm { number: 3, name: "OpenMP", class: 1 }),
    ("PTHREAD", Paradigm { number: 7, name: "POSIX threads", class: 2 }),
];

/// Roles by which a program says what it does.
pub(in crate::otf2) const RANGES: [&str; 5] = ["range-push", "range-pop", "range-start", "range-end", "mark"];

/// The paradigm of an API: of one that has ranges, the user's.
pub(in crate::otf2) fn of(trace: &Trace, api: &str) -> Paradigm {
    let model = trace.models().iter().find(|m| m.api == api);
    let paradigm = model.and_then(|m| m.paradigm.as_deref());
    match TABLE.iter().find(|(name, _)| Some(*name) == paradigm) {
        Some((_, paradigm)) => *paradigm,
        None => {
            let has = |role: &&str| model.is_some_and(|m| m.functions.iter().any(|f| f.has_role(role)));
            if RANGES.iter().any(has) { USER } else { OTHER }
        }
    }
}

//! Paradigms: what OTF2 calls the APIs that it knows.

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

/// How OTF2 calls an API, by the API's short name.
const TABLE: [(&str, Paradigm); 10] = [
    ("cuda", CUDA),
    ("cudart", CUDA),
    ("hip", Paradigm { number: 23, name: "HIP", class: 3 }),
    ("opencl", Paradigm { number: 19, name: "OpenCL", class: 3 }),
    ("openacc", Paradigm { number: 18, name: "OpenACC", class: 3 }),
    ("kokkos", Paradigm { number: 24, name: "Kokkos", class: 3 }),
    ("mpi", Paradigm { number: 4, name: "MPI", class: 0 }),
    ("shmem", Paradigm { number: 13, name: "SHMEM", class: 0 }),
    ("openmp", Paradigm { number: 3, name: "OpenMP", class: 1 }),
    ("pthread", Paradigm { number: 7, name: "POSIX threads", class: 2 }),
];
const CUDA: Paradigm = Paradigm { number: 5, name: "CUDA", class: 3 };

/// Roles by which a program says what it does.
pub(in crate::otf2) const RANGES: [&str; 5] = ["range-push", "range-pop", "range-start", "range-end", "mark"];

/// The paradigm of an API: of one that has ranges, the user's.
pub(in crate::otf2) fn of(trace: &Trace, api: &str) -> Paradigm {
    let known = TABLE.iter().find(|(name, _)| *name == api);
    let model = || trace.models().iter().find(|m| m.api == api);
    match known {
        Some((_, paradigm)) => *paradigm,
        None => {
            let has = |role: &&str| model().is_some_and(|m| m.functions.iter().any(|f| f.has_role(role)));
            if RANGES.iter().any(has) { USER } else { OTHER }
        }
    }
}

//! Which rank of a job a process is, by the variables that the launcher of the job set.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_format::job::{LAUNCHERS, Launcher};

use super::Manifest;

/// A process's place in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u64,
    /// How many ranks there are; none if that is not known.
    pub size: Option<u64>,
    /// Its number among those of its machine; none if that is not known.
    pub local: Option<u64>,
}

/// The ranks of a trace's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The variable that has them.
    variable: &'static str,
    /// By process.
    ranks: BTreeMap<i64, Rank>,
    /// That of the tracer's launcher.
    own: Option<Rank>,
}

/// The rank by the variables of a launcher.
fn rank(launcher: &Launcher, given: &BTreeMap<String, u64>) -> Option<Rank> {
    let get = |name: &str| given.get(name).copied();
    let rank = get(launcher.rank)?;
    let size = get(launcher.size).filter(|size| rank < *size);
    (size.is_some() || !launcher.needs_size).then_some(Rank { rank, size, local: get(launcher.local) })
}

impl Job {
    /// The ranks by the one variable that distinguishes the most processes, and of equal ones the
    /// first of our list. Numbers of several launchers are never mixed.
    pub(super) fn new(manifest: &Manifest) -> Self {
        let of = |launcher: &Launcher| {
            let of = |p: &super::Process| Some((p.pid, rank(launcher, p.job.as_ref()?)?));
            let ranks: BTreeMap<i64, Rank> = manifest.processes.iter().filter_map(of).collect();
            Self { variable: launcher.rank, ranks, own: rank(launcher, &manifest.job) }
        };
        let distinct = |job: &Self| job.ranks.values().map(|r| r.rank).collect::<BTreeSet<_>>().len();
        let all = LAUNCHERS.iter().map(of).filter(|job| job.own.is_some() || !job.ranks.is_empty());
        all.reduce(|best, job| if distinct(&job) > distinct(&best) { job } else { best }).unwrap_or_default()
    }

    /// The variable that had the ranks; empty if none did.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// The rank of a process.
    pub fn rank_of(&self, pid: i64) -> Option<Rank> {
        self.ranks.get(&pid).copied()
    }

    /// Processes whose ranks are known, by id.
    pub fn ranks(&self) -> impl Iterator<Item = (i64, Rank)> {
        self.ranks.iter().map(|(pid, rank)| (*pid, *rank))
    }

    /// The lowest rank in the trace, or, of a trace in which no process has one, that of the
    /// tracer's launcher: what traces of one job differ by.
    pub fn first(&self) -> Option<u64> {
        self.ranks.values().map(|r| r.rank).min().or(self.own.map(|own| own.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Process;

    fn given(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
        all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn manifest(own: &[(&str, u64)], processes: &[&[(&str, u64)]]) -> Manifest {
        let processes = processes.iter().zip(1..);
        let process = |(all, pid): (&&[_], i64)| Process { pid, job: Some(given(all)), ..Process::default() };
        Manifest { job: given(own), processes: processes.map(process).collect(), ..Manifest::default() }
    }

    fn ranks(own: &[(&str, u64)], processes: &[&[(&str, u64)]]) -> Job {
        Job::new(&manifest(own, processes))
    }

    #[test]
    fn ranks_are_those_of_the_innermost_launcher() {
        let slurm = [("SLURM_PROCID", 1), ("SLURM_NTASKS", 2), ("SLURM_LOCALID", 0)];
        let worker =
            |rank| [&slurm[..], &[("RANK", rank), ("WORLD_SIZE", 16), ("LOCAL_RANK", rank - 8)]].concat();
        // `srun hetrace run -- torchrun`, whose own process is no rank of torchrun's.
        let job = ranks(&slurm, &[&slurm, &worker(9), &worker(8)]);
        assert_eq!(job.variable(), "RANK");
        assert_eq!(job.rank_of(1), None);
        assert_eq!(job.rank_of(2), Some(Rank { rank: 9, size: Some(16), local: Some(1) }));
        assert_eq!(job.first(), Some(8));
        // One process of each: the list decides.
        assert_eq!(ranks(&slurm, &[&worker(9)]).variable(), "RANK");
    }

    #[test]
    fn a_variable_that_is_the_same_for_all_tells_nothing() {
        // A container's `RANK` is of the container; `mpirun` started processes in it.
        let process = |rank| [("RANK", 0), ("WORLD_SIZE", 2), ("OMPI_COMM_WORLD_RANK", rank)];
        let job = ranks(&[("RANK", 0), ("WORLD_SIZE", 2)], &[&process(4), &process(5)]);
        assert_eq!(job.variable(), "OMPI_COMM_WORLD_RANK");
        assert_eq!(job.rank_of(2), Some(Rank { rank: 5, size: None, local: None }));
    }

    #[test]
    fn what_says_too_little_is_no_rank() {
        assert_eq!(ranks(&[], &[&[]]), Job::default());
        assert_eq!(ranks(&[], &[&[("RANK", 3)]]).rank_of(1), None);
        assert_eq!(ranks(&[], &[&[("RANK", 3), ("WORLD_SIZE", 3)]]).first(), None);
        // Nothing was recorded, but the launcher is of a rank.
        assert_eq!(ranks(&[("PMIX_RANK", 6)], &[]).first(), Some(6));
        // A size that cannot be is not known.
        let job = ranks(&[], &[&[("PMI_RANK", 3), ("PMI_SIZE", 2)]]);
        assert_eq!(job.rank_of(1), Some(Rank { rank: 3, size: None, local: None }));
    }
}

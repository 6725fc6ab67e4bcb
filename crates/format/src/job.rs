//! The variables by which launchers of jobs give a process its rank: what a recording keeps of an environment, and
//! what readers look for in the manifest.

/// Variables by which a launcher gives a process its rank, how many ranks there are, and its
/// rank on its machine; empty if it does not give that.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    /// The variable with the rank, from 0.
    pub rank: &'static str,
    /// That with the number of ranks.
    pub size: &'static str,
    /// That with the rank on its machine, from 0.
    pub local: &'static str,
    /// Whether a rank counts only beside a size: its name alone says little.
    pub needs_size: bool,
}

const fn launcher(rank: &'static str, size: &'static str, local: &'static str) -> Launcher {
    Launcher { rank, size, local, needs_size: false }
}

/// All of them. Those that start processes of others come later: in a job of the first that was started by
/// the last, ranks are those of the first.
pub const LAUNCHERS: [Launcher; 8] = [
    // torchrun, and what else follows PyTorch
    Launcher { needs_size: true, ..launcher("RANK", "WORLD_SIZE", "LOCAL_RANK") },
    // Open MPI
    launcher("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    // MVAPICH
    launcher("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    // MPICH, Intel MPI
    launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    // Cray PALS
    launcher("PALS_RANKID", "", "PALS_LOCAL_RANKID"),
    // Flux
    launcher("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"),
    // whatever starts processes by PMIx
    launcher("PMIX_RANK", "", ""),
    // Slurm
    launcher("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
];

/// Returns the names of all variables.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let names = LAUNCHERS.iter().flat_map(|launcher| [launcher.rank, launcher.size, launcher.local]);
    names.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_of_two_launchers() {
        let mut all: Vec<_> = variables().collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!((before, all.len()), (21, 21));
    }
}

//! Which rank of a job a process is: what the launchers of jobs put into its environment.
//!
//! Of an environment only those variables are kept, and of them only plain numbers. It is
//! read from outside, in `/proc/PID/environ`, when the first ring of a process is found: that
//! is what the process was started with, which is where launchers put it. The program does
//! nothing for it.

use std::fs::File;
use std::io::Read;

use hetrace_format::job::variables;

use crate::manifest::Process;

pub use crate::manifest::Job;

/// Most bytes that are read of an environment; Linux allows programs 6 MiB on its usual stacks.
const MOST: u64 = 8 << 20;

/// Returns what an environment says: `NAME=VALUE`, with a zero after each.
pub fn parse(environment: &[u8]) -> Job {
    let one = |entry: &[u8]| {
        let entry = std::str::from_utf8(entry).ok()?;
        let (name, value) = entry.split_once('=')?;
        let plain = variables().any(|known| known == name) && value.bytes().all(|b| b.is_ascii_digit());
        plain.then_some(())?;
        Some((name.to_owned(), value.parse::<u32>().ok()?.into()))
    };
    environment.split(|byte| *byte == 0).filter_map(one).collect()
}

/// Returns what the launcher itself was started with.
pub fn own() -> Job {
    let entry = |name: &str| Some(format!("{name}={}", std::env::var(name).ok()?));
    let all: Vec<String> = variables().filter_map(entry).collect();
    parse(all.join("\0").as_bytes())
}

/// Returns what a process was started with; none if that cannot be read (any more). `start` is when it
/// started, as `/proc/PID/stat` shows: another process may have its id by now.
pub fn of_process(pid: u32, start: u64) -> Option<Job> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MOST).read_to_end(&mut environment).ok()?;
    // That of a process that has ended is empty.
    (!environment.is_empty() && started(pid)? == start).then(|| parse(&environment))
}

/// Takes processes whose environment could not be read for ones of the launcher's own rank, from
/// which they most likely have it. Returns a remark that says how many those are.
pub fn inherit(processes: &mut [Process], own: &Job) -> Option<String> {
    let in_job = !own.is_empty() || processes.iter().flat_map(|p| &p.job).any(|job| !job.is_empty());
    let unread: Vec<&mut Process> = processes.iter_mut().filter(|p| p.job.is_none()).collect();
    let count = unread.len();
    if !own.is_empty() {
        unread.into_iter().for_each(|process| process.job = Some(own.clone()));
    }
    let rank = if own.is_empty() { "their rank is unknown" } else { "they get the launcher's rank" };
    (in_job && count > 0)
        .then(|| format!("cannot read the environment of {count} processes (they may have ended): {rank}"))
}

/// Returns when a process started, in the kernel's units: field 22 of its `stat`.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets, which may have anything in it.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_known_variables_are_kept() {
        let environment = b"PATH=/bin\0RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=-1\0SLURM_PROCID=+2\0PMI_RANK=\0\
            OMPI_COMM_WORLD_RANK=0x1\0PMIX_RANK=99999999999\0SECRET_RANK=1\0MPI_LOCALRANKID=\xff\0no\0";
        let expected = [("RANK".to_owned(), 3), ("WORLD_SIZE".to_owned(), 8)];
        assert_eq!(parse(environment), Job::from(expected));
        assert!(parse(b"").is_empty());
    }

    #[test]
    fn who_ended_too_soon_has_the_rank_of_the_launcher() {
        let job = |rank| Job::from([("PMI_RANK".to_owned(), rank)]);
        let process = |job| Process { job, ..Process::default() };
        let mut processes = [process(None), process(Some(job(1))), process(Some(Job::new()))];
        let remark = inherit(&mut processes, &job(7)).unwrap();
        assert!(remark.contains("of 1 processes (") && remark.ends_with("the launcher's rank"), "{remark}");
        assert_eq!(processes.map(|p| p.job), [Some(job(7)), Some(job(1)), Some(Job::new())]);
        let mut processes = [process(None), process(Some(job(1)))];
        assert!(inherit(&mut processes, &Job::new()).unwrap().ends_with("is unknown"));
        assert_eq!(processes[0].job, None);
        // Nobody is in a job.
        assert_eq!(inherit(&mut [process(None), process(Some(Job::new()))], &Job::new()), None);
    }

    #[test]
    fn a_process_is_read_while_it_is_there_and_is_the_one() {
        let mut child = std::process::Command::new("sleep").arg("900").env("PMI_RANK", "5").spawn().unwrap();
        let pid = child.id();
        // Until the new program is there, the environment is that of this test.
        let read = || of_process(pid, started(pid)?).filter(|job| job.contains_key("PMI_RANK"));
        let job = (0..120_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            read()
        });
        assert_eq!(job.as_ref().and_then(|job| job.get("PMI_RANK")), Some(&5));
        assert_eq!(of_process(pid, started(pid).unwrap() + 1), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of_process(pid, 0), None);
    }
}

//! Tracepoints of GPU drivers, which have whatever fields they have.

use std::fs;
use std::os::fd::OwnedFd;

use crate::catalog::{self, Kind};
use crate::decoder::{Decoder, Role};
use crate::event::Event;
use crate::layout::Layout;
use crate::perf::bpf::{Loaded, Own};
use crate::perf::open::{self, Of};
use crate::tracefs::Tracefs;

/// Where the kernel lists GPUs, and where there are other files, too.
const GPUS: &str = "/sys/class/drm";

/// A driver's tracepoint.
#[derive(Debug)]
pub struct Driver {
    /// Its system in tracefs.
    pub system: String,
    /// How its records are laid out.
    pub layout: Layout,
}

impl Driver {
    /// Returns all of this machine's drivers; adds to `missing` what cannot be read.
    pub fn of_gpus(tracefs: &Tracefs, missing: &mut Vec<String>) -> Vec<Self> {
        // The kernel's own tracepoints of fences are there without a GPU, too.
        let is_gpu = |name: &[u8]| name.starts_with(b"card") || name.starts_with(b"render");
        let mut entries = fs::read_dir(GPUS).into_iter().flatten().flatten();
        let has_gpu = entries.any(|entry| is_gpu(entry.file_name().as_encoded_bytes()));
        let is_driver = |s: &str| catalog::is_driver(s) && (has_gpu || !catalog::is_common(s));
        Self::of(tracefs, &is_driver, missing)
    }

    /// Returns those of some systems.
    fn of(tracefs: &Tracefs, is_driver: &dyn Fn(&str) -> bool, missing: &mut Vec<String>) -> Vec<Self> {
        let mut found = Vec::new();
        for system in tracefs.systems().into_iter().filter(|system| is_driver(system)) {
            for name in tracefs.tracepoints(&system).into_iter().filter(|n| !catalog::is_frequent(n)) {
                match tracefs.layout(&system, &name) {
                    Ok(Some(layout)) => found.push(Self { system: system.clone(), layout }),
                    Ok(None) => {}
                    Err(why) => missing.push(why),
                }
            }
        }
        found
    }

    /// Returns how its records are read.
    pub fn decoder(&self) -> Decoder {
        let Self { system, layout } = self;
        let name = &layout.name;
        let event = if name.starts_with(system) { name.clone() } else { format!("{system}_{name}") };
        let event = Event::new(&event, layout, &[], &[]);
        Decoder::new(Role::Catalog(Kind::Everybody), layout, event)
    }

    /// Opens an event that is not enabled, at whose tracepoint a program may copy what all CPUs record. Programs at perf's
    /// tracepoints keep each other away from a CPU, so there is none where such copy switches and wake-ups.
    pub fn copied(&self, loaded: &Loaded, cpu: u32) -> Option<(OwnedFd, &Layout)> {
        if loaded.copies() {
            return None;
        }
        Some((open::tracepoint(self.layout.id, Of::Machine, cpu, 0, None).ok()?, &self.layout))
    }

    /// Returns whether a program records it.
    pub fn is_recorded(&self, own: Option<&Own>) -> bool {
        own.is_some_and(|own| own.records(self.layout.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::bpf::Reading;
    use crate::sources::Sources;
    use crate::{Options, Scope};

    /// Of a system that all machines have: with and without texts.
    fn workqueue(tracefs: &Tracefs, missing: &mut Vec<String>) -> Vec<Driver> {
        Driver::of(tracefs, &|system| system == "workqueue", missing)
    }

    fn options() -> Options {
        Options { scope: Scope::System, syscalls: None, ring_bytes: 1 << 20, probes: Vec::new() }
    }

    fn ids(tracefs: &Tracefs) -> Vec<u16> {
        workqueue(tracefs, &mut Vec::new()).iter().map(|driver| driver.layout.id).collect()
    }

    fn has_decoder(sources: &mut Sources, id: u16) -> bool {
        sources.decoder(&id.to_ne_bytes()).is_some()
    }

    #[test]
    fn where_programs_record_perf_has_nothing_for_a_processor() {
        let Ok(tracefs) = Tracefs::open() else {
            eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
            return;
        };
        let loaded = Sources::load(&options(), Reading::Fields).filter(|loaded| !loaded.copies());
        let Some(loaded) = loaded else {
            eprintln!(
                "SKIPPED: programs in the kernel are not possible here, or it does not describe its types"
            );
            return;
        };
        let mut sources =
            Sources::by_programs(&options(), None, loaded, &tracefs, workqueue).expect("programs");
        let ids = ids(&tracefs);
        assert!(!ids.is_empty() && sources.missing.is_empty(), "{:?}", sources.missing);
        assert!(sources.machine.is_empty() && sources.leaders.is_empty() && sources.others.is_empty());
        assert!(ids.iter().all(|id| sources.own.as_ref().is_some_and(|own| own.records(*id))));
        assert!(ids.iter().all(|id| has_decoder(&mut sources, *id)));
        // Their closing takes the kernel long.
        assert!(sources.of_perf());
    }

    #[test]
    fn what_programs_do_not_record_perf_does() {
        let Ok(tracefs) = Tracefs::open() else {
            eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
            return;
        };
        let by_perf = || Sources::by_perf(&options(), None, &tracefs, workqueue).ok();
        // Programs that copy switches and wake-ups would keep those of drivers away.
        let loaded = Sources::load(&options(), Reading::Copies);
        let copying =
            loaded.and_then(|loaded| Sources::by_programs(&options(), None, loaded, &tracefs, workqueue));
        let ids = ids(&tracefs);
        for mut sources in [by_perf(), copying].into_iter().flatten() {
            assert!(!sources.machine.is_empty() && sources.missing.is_empty(), "{:?}", sources.missing);
            assert!(ids.iter().all(|id| sources.own.as_ref().is_none_or(|own| !own.records(*id))));
            assert!(ids.iter().all(|id| has_decoder(&mut sources, *id)));
        }
    }
}

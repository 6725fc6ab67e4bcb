//! What the launcher does when a file is cut short under its mapping.
//!
//! A traced program runs as the same user, so it can truncate the files that the launcher has
//! mapped; the next access is a SIGBUS. The handler puts a page of zeros where the file ends,
//! and counts: the reader goes on, finds nothing there that could be believed, and the report
//! says what happened.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::PAGE;

/// Pages that were missing.
static MISSING: AtomicU64 = AtomicU64::new(0);

/// Pages that were found to be missing so far.
pub fn missing_pages() -> u64 {
    MISSING.load(Ordering::Relaxed)
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code == libc::BUS_ADRERR {
        let page = address & !(PAGE - 1);
        // SAFETY: the page at a fault of this kind belongs to a mapping of a file and is
        // behind that file's end: no data of anybody's is there. `mmap` is a plain system call.
        let placed = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if placed != libc::MAP_FAILED {
            MISSING.fetch_add(1, Ordering::Relaxed);
            return;
        }
    }
    // Somebody else's fault, or no help: it happens again, and ends the process as usual.
    // SAFETY: resets the disposition of a valid signal.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Installs the handler in this process, for the launcher only.
pub fn install() {
    // SAFETY: all bit patterns of a sigaction are valid; the handler does only what a handler
    // may. SA_NODEFER: `handle` itself touches no mapping of a file.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::map_file;

    #[test]
    #[cfg_attr(miri, ignore = "no signals there")]
    fn a_file_cut_short_reads_as_zeros() {
        install();
        let path = std::env::temp_dir().join(format!("hetrace-survive-{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("just made");
        file.set_len(3 * PAGE as u64).expect("room");
        let mapping = map_file(&file, 3 * PAGE, true).expect("mapped");
        // SAFETY: inside the mapping.
        unsafe { mapping.base().add(2 * PAGE).write_volatile(7) };
        file.set_len(PAGE as u64).expect("shorter");
        let before = missing_pages();
        // SAFETY: inside the mapping; the handler fills in what the file lacks.
        assert_eq!(unsafe { mapping.base().add(2 * PAGE).read_volatile() }, 0);
        assert_eq!(missing_pages(), before + 1);
    }
}

//! How ITT gets our functions: each static part of it in the process calls [`__itt_api_init`] once, before its
//! first function but for those that create something: domains, texts and counters that a program makes first are
//! its static part's own, which leaves them in lists. They are recorded as if they were created then.

use std::ffi::{CStr, c_char, c_void};

use hetrace_interpose::{ErrnoGuard, session};

use crate::callbacks;
use crate::generated::prelude::Address;
use crate::generated::wrappers;
use crate::local::made_before;
use crate::objects::{Counter, Domain, Text};

/// One of ITT's functions, as its static part lists it.
#[repr(C)]
#[derive(Debug)]
pub struct Listed {
    /// `__itt_…`; NULL ends the list.
    name: *const c_char,
    /// Where the address stands that programs call.
    place: *mut *const c_void,
    /// What stands there until somebody has looked for a collector.
    first: *const c_void,
    /// What does the same without a collector: NULL for nothing.
    without: *const c_void,
    /// A set of bits: what the function belongs to.
    group: u32,
}

/// What a static part keeps, of its versions from 3.0 on. What stands behind is younger, and not ours to read.
#[repr(C)]
#[derive(Debug)]
pub struct Global {
    magic: [u8; 8],
    /// Major, minor, and the day of its making, as 20180723.
    version: [u64; 3],
    atomics: [i64; 3],
    mutex: libc::pthread_mutex_t,
    library: *mut c_void,
    error_handler: *mut c_void,
    library_path: *mut *const c_char,
    list: *mut Listed,
    next: *mut Global,
    threads: *mut c_void,
    domains: *const Domain,
    texts: *const Text,
    state: i32,
    /// Not there before [`COUNTERS_SINCE`].
    counters: *const Counter,
}

/// What stands at the beginning of [`Global`].
const MAGIC: [u8; 4] = [0xED, 0xAB, 0xAB, 0xEC];

/// The groups of locks, and of those that threads spin on. What creates and names them is of both.
const SYNC: u32 = 1 << 4;
const FSYNC: u32 = 1 << 5;

/// The last day on which what a static part lists had no `without`.
const SHORT_UNTIL: u64 = 20_101_001;
/// The first day on which it surely had a list of counters.
const COUNTERS_SINCE: u64 = 20_180_723;

macro_rules! functions {
    ($($from:ident: $($name:ident)*;)*) => {
        &[$($( (stringify!($name), Address($from::$name as *const c_void)) ),*),*]
    };
}

/// Our functions, by name.
static FUNCTIONS: &[(&str, Address)] = functions! {
    callbacks:
        __itt_id_create __itt_id_destroy __itt_task_begin __itt_task_begin_fn __itt_task_end
        __itt_task_begin_overlapped __itt_task_end_overlapped __itt_task_group __itt_region_begin
        __itt_region_end __itt_frame_begin __itt_frame_end __itt_frame_begin_v3 __itt_frame_end_v3
        __itt_frame_submit_v3 __itt_marker __itt_metadata_str_add __itt_metadata_str_add_with_scope
        __itt_metadata_add __itt_metadata_add_with_scope __itt_relation_add_to_current __itt_relation_add
        __itt_id_create_ex __itt_id_destroy_ex __itt_task_begin_ex __itt_task_begin_fn_ex
        __itt_task_begin_overlapped_ex __itt_task_end_overlapped_ex __itt_marker_ex __itt_thread_set_name
        __itt_formatted_metadata_add_overlapped __itt_histogram_submit
        __itt_counter_set_value __itt_counter_set_value_v3 __itt_counter_set_value_ex
        __itt_heap_allocate_end __itt_heap_reallocate_end __itt_event_create __itt_event_start
        __itt_event_end __itt_mark_create __itt_mark __itt_mark_off __itt_mark_global
        __itt_mark_global_off;
    wrappers:
        __itt_pause __itt_resume __itt_pause_scoped __itt_resume_scoped __itt_detach __itt_thread_ignore
        __itt_domain_create __itt_string_handle_create __itt_frame_create __itt_counter_create
        __itt_counter_create_typed __itt_counter_create_v3 __itt_counter_destroy __itt_counter_inc
        __itt_counter_inc_delta __itt_counter_dec __itt_counter_dec_delta __itt_counter_inc_v3
        __itt_counter_inc_delta_v3 __itt_counter_dec_v3 __itt_counter_dec_delta_v3
        __itt_formatted_metadata_add __itt_histogram_create __itt_track_group_create __itt_track_create
        __itt_set_track __itt_clock_domain_create __itt_clock_domain_reset __itt_task_end_ex __itt_get_timestamp
        __itt_sync_create __itt_sync_rename __itt_sync_destroy __itt_sync_prepare __itt_sync_cancel
        __itt_sync_acquired __itt_sync_releasing __itt_fsync_prepare __itt_fsync_cancel
        __itt_fsync_acquired __itt_fsync_releasing __itt_heap_function_create __itt_heap_allocate_begin
        __itt_heap_free_begin __itt_heap_free_end __itt_heap_reallocate_begin __itt_module_load
        __itt_module_unload;
};

/// What ITT calls when it has loaded us. Without a session its functions become empty, which cost nothing.
///
/// # Safety
/// `global` is NULL or what a static part of ITT keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut Global, groups: u32) {
    let _errno = ErrnoGuard::new();
    // SAFETY: NULL, or what the part of ITT in the program keeps for ever. It is not changed meanwhile: ITT holds its lock.
    let Some(global) = (unsafe { global.as_ref() }) else { return };
    if !global.magic.starts_with(&MAGIC) {
        return;
    }
    let [_, _, day] = global.version;
    if day <= SHORT_UNTIL {
        hetrace_interpose::note(b"ITT: what a library has of it is of 2010, and is not recorded");
        return;
    }
    let recorded = session().is_some();
    if recorded {
        // SAFETY: a static part, which is not changed meanwhile.
        unsafe { record_made(global, day) };
    }
    let mut at = global.list;
    // SAFETY: ITT's list, which ends with a NULL name.
    while let Some(listed) = unsafe { at.as_ref() }.filter(|l| !l.name.is_null()) {
        // SAFETY: not NULL, so a NUL-terminated name.
        let name = unsafe { CStr::from_ptr(listed.name) }.to_bytes();
        let ours = function(name, listed.group).filter(|_| recorded && listed.group & groups != 0);
        if !listed.place.is_null() {
            let address = ours.map_or(listed.without, |address| address.0);
            // SAFETY: a place of ITT's for the address of this very function. Other threads may be calling by it:
            // they get the old address or the new one, as ITT itself has it.
            unsafe { listed.place.write_volatile(address) };
        }
        // SAFETY: inside the list, which has not ended.
        at = unsafe { at.add(1) };
    }
}

/// Our function for one that a static part lists.
fn function(name: &[u8], group: u32) -> Option<&'static Address> {
    // Those of the group are listed by the names of others, which do the same for all threads: `__itt_sync_prepare`
    // for `__itt_fsync_prepare`.
    let sync = name.strip_prefix(b"__itt_sync_").filter(|_| group & (SYNC | FSYNC) == FSYNC);
    let is = |known: &str| match sync {
        Some(rest) => known.strip_prefix("__itt_fsync_").is_some_and(|known| known.as_bytes() == rest),
        None => known.as_bytes() == name,
    };
    FUNCTIONS.iter().find(|(known, _)| is(known)).map(|(_, address)| address)
}

/// Records what was created before we were there.
///
/// # Safety
/// `global` is what a static part of that day keeps, whose lock is held.
unsafe fn record_made(global: &Global, day: u64) {
    let mut at = global.domains;
    // SAFETY: NULL, or a domain of the list, which nobody frees while the lock is held.
    while let Some(domain) = unsafe { at.as_ref() } {
        made_before(domain.name.cast(), at.cast_mut().cast(), |name| {
            // SAFETY: a domain's name ends with NUL; `made_before` passes over those that have none.
            unsafe { wrappers::__itt_domain_create(name) };
        });
        at = domain.next;
    }
    let mut at = global.texts;
    // SAFETY: NULL, or a text of the list, which nobody frees while the lock is held.
    while let Some(text) = unsafe { at.as_ref() } {
        made_before(text.text.cast(), at.cast_mut().cast(), |name| {
            // SAFETY: it ends with NUL; `made_before` passes over those that are NULL.
            unsafe { wrappers::__itt_string_handle_create(name) };
        });
        at = text.next;
    }
    if day < COUNTERS_SINCE {
        return;
    }
    let mut at = global.counters;
    // SAFETY: NULL, or a counter of the list, which nobody frees while the lock is held.
    while let Some(counter) = unsafe { at.as_ref() } {
        made_before(counter.name.cast(), at.cast_mut().cast(), |name| {
            // SAFETY: its name ends with NUL; `made_before` passes over those that have none. What it is of is NULL or ends
            // with NUL.
            unsafe { wrappers::__itt_counter_create_typed(name, counter.of.cast(), counter.value_type) };
        });
        at = counter.next;
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::generated::tables::NAMES;

    #[test]
    fn programs_get_every_function_of_the_model() {
        let mut ours: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        let mut all: Vec<&str> = NAMES.iter().map(|name| name.to_str().unwrap()).collect();
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all);
    }

    #[test]
    fn functions_of_one_name_differ_by_their_group() {
        let at = |function: Option<&Address>| function.map(|f| f.0);
        let [plain, fast] = [SYNC, FSYNC].map(|group| at(function(b"__itt_sync_prepare", group)));
        assert_eq!(plain, Some(wrappers::__itt_sync_prepare as *const c_void));
        assert_eq!(fast, Some(wrappers::__itt_fsync_prepare as *const c_void));
        assert_eq!(at(function(b"__itt_sync_unheard_of", FSYNC)), None);
        let create = at(function(b"__itt_sync_create", SYNC | FSYNC));
        assert_eq!(create, Some(wrappers::__itt_sync_create as *const c_void));
    }

    #[test]
    fn the_layout_is_that_of_itt() {
        assert_eq!(offset_of!(Global, list), 120);
        let lists = [offset_of!(Global, domains), offset_of!(Global, texts), offset_of!(Global, counters)];
        assert_eq!(lists, [144, 152, 168]);
        assert_eq!(size_of::<Listed>(), 40);
    }
}

//! What ITT's functions answer. Nothing real stands behind them, so the generated `real` functions lead here.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_interpose::ranges::{levels, named};
use hetrace_interpose::table::Table;
use hetrace_interpose::window;

use crate::generated::prelude::{P, REAL};
use crate::generated::real::known;
use crate::generated::tables::NAMES;
use crate::objects;

/// What a range is that one call begins and another one ends. Two of them may have the same id of the program's.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A task that may overlap others.
    Task = 1,
    /// A region.
    Region,
    /// A frame with an id, or without.
    Frame,
    /// A frame of the older kind.
    OldFrame,
    /// An event.
    Event,
}

/// Returns the id of a range: never 0, which stands for none.
pub fn key(kind: Kind, domain: P, id: u64, extra: u64) -> u64 {
    let add = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    };
    [domain as u64, id, extra].into_iter().fold(kind as u64, add).max(1)
}

/// Functions that answer nothing have nothing to do.
macro_rules! nothing {
    ($($name:ident($($ty:ty),*);)*) => {
        $( unsafe extern "C" fn $name($(_: $ty),*) {} )*
    };
}

nothing! {
    __itt_detach();
    __itt_thread_set_name(u32, *const i8);
    __itt_thread_ignore();
    __itt_id_create(P, u64, u64);
    __itt_id_destroy(P, u64, u64);
    __itt_task_group(P, u64, u64, u64, u64, P);
    __itt_frame_submit_v3(P, u64, u64, u64, u64);
    __itt_marker(P, u64, u64, P, u32);
    __itt_counter_destroy(P);
    __itt_counter_inc(P);
    __itt_counter_inc_delta(P, u64);
    __itt_counter_dec(P);
    __itt_counter_dec_delta(P, u64);
    __itt_counter_inc_v3(P, P);
    __itt_counter_inc_delta_v3(P, P, u64);
    __itt_counter_dec_v3(P, P);
    __itt_counter_dec_delta_v3(P, P, u64);
    __itt_counter_set_value(P, u32, u64);
    __itt_counter_set_value_v3(P, u32, u64);
    __itt_counter_set_value_ex(P, P, u64, u32, u64);
    __itt_metadata_add(P, u64, u64, P, u32, u64, *const c_void, u64);
    __itt_metadata_str_add(P, u64, u64, P, *const i8, u64);
    __itt_metadata_add_with_scope(P, u32, P, u32, u64, *const c_void, u64);
    __itt_metadata_str_add_with_scope(P, u32, P, *const i8, u64);
    __itt_formatted_metadata_add(P, P);
    __itt_formatted_metadata_add_overlapped(P, u64, u64, P);
    __itt_histogram_submit(P, u32, u32, u64, *const c_void, u64, *const c_void, u64);
    __itt_set_track(P);
    __itt_relation_add_to_current(P, u32, u64, u64);
    __itt_relation_add(P, u64, u64, u32, u64, u64);
    __itt_clock_domain_reset();
    __itt_id_create_ex(P, P, u64, u64, u64);
    __itt_id_destroy_ex(P, P, u64, u64, u64);
    __itt_task_begin_ex(P, P, u64, u64, u64, u64, u64, P);
    __itt_task_begin_fn_ex(P, P, u64, u64, u64, u64, u64, u64);
    __itt_task_end_ex(P, P, u64);
    __itt_task_begin_overlapped_ex(P, P, u64, u64, u64, u64, u64, P);
    __itt_task_end_overlapped_ex(P, P, u64, u64, u64);
    __itt_marker_ex(P, P, u64, u64, u64, P, u32);
    __itt_sync_create(u64, *const i8, *const i8, u32);
    __itt_sync_rename(u64, *const i8);
    __itt_sync_destroy(u64);
    __itt_sync_prepare(u64);
    __itt_sync_cancel(u64);
    __itt_sync_acquired(u64);
    __itt_sync_releasing(u64);
    __itt_fsync_prepare(u64);
    __itt_fsync_cancel(u64);
    __itt_fsync_acquired(u64);
    __itt_fsync_releasing(u64);
    __itt_heap_allocate_begin(P, u64, i32);
    __itt_heap_allocate_end(P, u64, u64, i32);
    __itt_heap_free_begin(P, u64);
    __itt_heap_free_end(P, u64);
    __itt_heap_reallocate_begin(P, u64, u64, i32);
    __itt_heap_reallocate_end(P, u64, u64, u64, i32);
    __itt_module_load(u64, u64, *const i8);
    __itt_module_unload(u64);
}

/// With `--on-calls` the program says by these what is recorded.
unsafe extern "C" fn __itt_pause() {
    window::asked(false);
}

unsafe extern "C" fn __itt_resume() {
    window::asked(true);
}

unsafe extern "C" fn __itt_pause_scoped(scope: u32) {
    if scope & 1 != 0 {
        window::asked(false);
    }
}

unsafe extern "C" fn __itt_resume_scoped(scope: u32) {
    if scope & 1 != 0 {
        window::asked(true);
    }
}

/// A text that ranges may have for a name.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
unsafe fn registered(handle: P, text: *const i8) -> P {
    // SAFETY: NULL, or the program's own text, which ends with a NUL.
    unsafe { named::registered(handle, text) };
    handle
}

unsafe extern "C" fn __itt_domain_create(name: *const i8) -> P {
    // SAFETY: the program's text. A frame is called by its domain.
    unsafe { registered(known_by(name).unwrap_or_else(|| objects::domain(name.cast())), name) }
}

unsafe extern "C" fn __itt_string_handle_create(text: *const i8) -> P {
    // SAFETY: the program's text.
    unsafe { registered(known_by(text).unwrap_or_else(|| objects::text(text.cast())), text) }
}

unsafe extern "C" fn __itt_frame_create(name: *const i8) -> P {
    // SAFETY: the program's text.
    unsafe { registered(objects::text(name.cast()), name) }
}

/// Address of a name → the object that a static part of ITT has made for it, while its creation is recorded.
static MADE: Table<64> = Table::new();

/// Records by `create` that there is an object, which a static part of ITT had made before it asked for us: `create`
/// calls the wrapper with `name`, which returns `object`.
pub fn made_before(name: *const i8, object: P, create: impl FnOnce(*const i8)) {
    if name.is_null() || object.is_null() || !MADE.set(name as u64, object as u64) {
        return;
    }
    create(name);
    MADE.remove(name as u64);
}

/// The object that is already known by the name at this very address.
fn known_by(name: *const i8) -> Option<P> {
    // NULL is the address of none; in a table it stands for a free place.
    let object = if name.is_null() { None } else { MADE.get(name as u64) };
    object.map(|object| without_provenance_mut(object as usize))
}

/// Events and marks are known by a number, which ITT has in an `int`.
fn number() -> P {
    static LAST: AtomicU32 = AtomicU32::new(0);
    without_provenance_mut((LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & 0x7fff_ffff) as usize)
}

unsafe extern "C" fn __itt_event_create(name: *const i8) -> P {
    // SAFETY: the program's text.
    unsafe { registered(number(), name) }
}

unsafe extern "C" fn __itt_mark_create(_: *const i8) -> P {
    number()
}

unsafe extern "C" fn __itt_mark(_: P, _: *const i8) -> i32 {
    0
}

unsafe extern "C" fn __itt_mark_off(_: P) -> i32 {
    0
}

unsafe extern "C" fn __itt_mark_global(_: P, _: *const i8) -> i32 {
    0
}

unsafe extern "C" fn __itt_mark_global_off(_: P) -> i32 {
    0
}

/// A task begins inside those of its thread and domain.
fn push(domain: P, registered: P) -> i32 {
    let level = levels::push(domain as u64);
    // SAFETY: no text, and the program's handle.
    unsafe { named::pushed(domain as u64, level, null(), registered) };
    level
}

unsafe extern "C" fn __itt_task_begin(domain: P, _: u64, _: u64, _: u64, _: u64, registered: P) -> i32 {
    push(domain, registered)
}

unsafe extern "C" fn __itt_task_begin_fn(domain: P, _: u64, _: u64, _: u64, _: u64, function: u64) -> i32 {
    // No registered text: such a task belongs to a window of no name but the empty one.
    push(domain, without_provenance_mut(function as usize))
}

unsafe extern "C" fn __itt_task_end(domain: P) -> i32 {
    let level = levels::pop(domain as u64);
    named::popped(domain as u64, level);
    level
}

/// A range begins that any thread may end.
fn start(id: u64, registered: P) -> u64 {
    // SAFETY: no text, and the program's handle.
    unsafe { named::started(id, null(), registered) };
    id
}

unsafe extern "C" fn __itt_task_begin_overlapped(d: P, id: u64, extra: u64, _: u64, _: u64, name: P) -> u64 {
    start(key(Kind::Task, d, id, extra), name)
}

unsafe extern "C" fn __itt_task_end_overlapped(_: P, id: u64) {
    named::ended(id);
}

unsafe extern "C" fn __itt_region_begin(d: P, id: u64, extra: u64, _: u64, _: u64, name: P) -> u64 {
    start(key(Kind::Region, d, id, extra), name)
}

unsafe extern "C" fn __itt_region_end(_: P, id: u64) {
    named::ended(id);
}

unsafe extern "C" fn __itt_frame_begin_v3(domain: P, id: u64, extra: u64, registered: P) -> u64 {
    start(key(Kind::Frame, domain, id, extra), registered)
}

unsafe extern "C" fn __itt_frame_end_v3(_: P, id: u64) {
    named::ended(id);
}

unsafe extern "C" fn __itt_frame_begin(frame: P) -> u64 {
    start(key(Kind::OldFrame, frame, 0, 0), frame)
}

unsafe extern "C" fn __itt_frame_end(id: u64) {
    named::ended(id);
}

unsafe extern "C" fn __itt_event_start(event: P) -> u64 {
    start(key(Kind::Event, event, 0, 0), event)
}

unsafe extern "C" fn __itt_event_end(id: u64) {
    named::ended(id);
}

/// `__itt_metadata_u64`: what counters have that say nothing else.
const UNSIGNED: u32 = 1;

unsafe extern "C" fn __itt_counter_create(name: *const i8, _: *const i8) -> P {
    known_by(name).unwrap_or_else(|| objects::counter(UNSIGNED))
}

unsafe extern "C" fn __itt_counter_create_typed(name: *const i8, _: *const i8, value_type: u32) -> P {
    known_by(name).unwrap_or_else(|| objects::counter(value_type))
}

unsafe extern "C" fn __itt_counter_create_v3(_: P, _: *const i8, value_type: u32) -> P {
    objects::counter(value_type)
}

unsafe extern "C" fn __itt_histogram_create(domain: P, name: *const i8, x_type: u32, y_type: u32) -> P {
    // SAFETY: the program's text.
    unsafe { objects::histogram(domain, name.cast(), [x_type, y_type]) }
}

unsafe extern "C" fn __itt_track_group_create(registered: P, kind: u32) -> P {
    objects::track(registered, null_mut(), kind)
}

unsafe extern "C" fn __itt_track_create(group: P, registered: P, kind: u32) -> P {
    objects::track(registered, group, kind)
}

unsafe extern "C" fn __itt_clock_domain_create(_: u64, _: u64) -> P {
    objects::unique()
}

unsafe extern "C" fn __itt_heap_function_create(_: *const i8, _: *const i8) -> P {
    objects::unique()
}

unsafe extern "C" fn __itt_get_timestamp() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Leads all wrappers here, before anyone can call one.
pub fn fill() {
    hetrace_interpose::lead! { NAMES, REAL, known:
         __itt_pause __itt_resume __itt_pause_scoped __itt_resume_scoped __itt_detach
         __itt_thread_set_name __itt_thread_ignore __itt_domain_create __itt_string_handle_create
         __itt_id_create __itt_id_destroy __itt_task_begin __itt_task_begin_fn __itt_task_end
         __itt_task_begin_overlapped __itt_task_end_overlapped __itt_task_group __itt_region_begin
         __itt_region_end __itt_frame_begin_v3 __itt_frame_end_v3 __itt_frame_submit_v3
         __itt_frame_create __itt_frame_begin __itt_frame_end __itt_event_create __itt_event_start
         __itt_event_end __itt_marker __itt_mark_create __itt_mark __itt_mark_off __itt_mark_global
         __itt_mark_global_off __itt_counter_create __itt_counter_create_typed __itt_counter_create_v3
         __itt_counter_destroy __itt_counter_inc __itt_counter_inc_delta __itt_counter_dec
         __itt_counter_dec_delta __itt_counter_inc_v3 __itt_counter_inc_delta_v3 __itt_counter_dec_v3
         __itt_counter_dec_delta_v3 __itt_counter_set_value __itt_counter_set_value_v3
         __itt_counter_set_value_ex __itt_metadata_add __itt_metadata_str_add
         __itt_metadata_add_with_scope __itt_metadata_str_add_with_scope __itt_relation_add_to_current
         __itt_formatted_metadata_add __itt_formatted_metadata_add_overlapped __itt_histogram_create
         __itt_histogram_submit __itt_track_group_create __itt_track_create __itt_set_track
         __itt_relation_add __itt_clock_domain_create __itt_clock_domain_reset __itt_id_create_ex
         __itt_id_destroy_ex __itt_task_begin_ex __itt_task_begin_fn_ex __itt_task_end_ex
         __itt_task_begin_overlapped_ex __itt_task_end_overlapped_ex __itt_marker_ex __itt_get_timestamp
         __itt_sync_create __itt_sync_rename __itt_sync_destroy __itt_sync_prepare __itt_sync_cancel
         __itt_sync_acquired __itt_sync_releasing __itt_fsync_prepare __itt_fsync_cancel
         __itt_fsync_acquired __itt_fsync_releasing __itt_heap_function_create __itt_heap_allocate_begin
         __itt_heap_allocate_end __itt_heap_free_begin __itt_heap_free_end __itt_heap_reallocate_begin
         __itt_heap_reallocate_end __itt_module_load __itt_module_unload
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn what_a_static_part_has_made_is_known_while_it_is_recorded() {
        let (name, made): (_, P) = (c"made before".as_ptr(), without_provenance_mut(0x1000));
        // SAFETY: NULL, or NUL-terminated.
        let domain = |name| unsafe { __itt_domain_create(name) };
        let mut seen = null_mut();
        made_before(name, made, |name| seen = domain(name));
        assert_eq!(seen, made);
        assert_ne!(domain(name), made, "it may be freed when somebody asks by its name later");
        made_before(null(), made, |_| panic!("an object without a name"));
        assert!(![null_mut(), made].contains(&domain(null())), "headers read flags of what they get");
    }

    #[test]
    fn every_function_has_an_implementation() {
        fill();
        for (name, real) in NAMES.iter().zip(&REAL) {
            assert!(!real.get().is_null(), "{name:?}");
        }
    }

    #[test]
    fn ranges_of_other_kinds_domains_and_ids_have_other_ids() {
        let domains = [null_mut(), without_provenance_mut(64), without_provenance_mut(128)];
        let mut keys: Vec<u64> = Vec::new();
        for kind in [Kind::Task, Kind::Region, Kind::Frame, Kind::OldFrame, Kind::Event] {
            for domain in domains {
                for (id, extra) in [(0, 0), (1, 0), (0, 1), (2, 1), (u64::MAX, 0)] {
                    keys.push(key(kind, domain, id, extra));
                }
            }
        }
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
        assert!(!keys.contains(&0));
    }
}

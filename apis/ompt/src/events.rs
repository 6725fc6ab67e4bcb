//! Which events we want a runtime to report: those of which anything may be recorded, or that the next tool wants.
//!
//! Some came twice: what happens on behalf of devices was reported by its end alone, or without words for the tool,
//! before there were events with both (`…_emi`). A runtime reports by one of the two. We take the newer where the
//! runtime has it, unless the next tool knows the older only.

use std::ffi::{c_uint, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_interpose::is_selected;

use crate::generated::tables::FUNCTIONS;
use crate::generated::wrappers::*;
use crate::{callbacks, passed, runtime, target, tasks};

/// Values of `ompt_set_result_t` from here on mean that an event is reported, at least at times.
const SOMETIMES: c_uint = 3;

/// An event, our callback, and the functions by which it is recorded, from the first to the last.
#[derive(Debug)]
struct Event {
    number: c_uint,
    callback: Address,
    functions: [usize; 2],
}

/// The address of a function of this library.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct Address(*const c_void);

// SAFETY: the address of a function of this library.
unsafe impl Sync for Address {}

macro_rules! events {
    ($($number:literal $module:ident::$callback:ident $first:ident..$last:ident;)*) => {
        /// Numbers are those of `ompt_callbacks_t`.
        static EVENTS: &[Event] = &[$(Event {
            number: $number,
            callback: Address($module::$callback as *const c_void),
            functions: [$first::INDEX, $last::INDEX],
        }),*];
    };
}

events! {
    1 callbacks::thread_begin ompt_thread_begin..ompt_thread_begin;
    2 callbacks::thread_end ompt_thread_end..ompt_thread_end;
    3 callbacks::parallel_begin ompt_parallel_begin..ompt_parallel_begin;
    4 callbacks::parallel_end ompt_parallel_end..ompt_parallel_end;
    5 tasks::task_create ompt_task_create..ompt_task_create;
    6 tasks::task_schedule ompt_task_begin..ompt_task_schedule;
    7 tasks::implicit_task ompt_implicit_task_begin..ompt_initial_task_end;
    8 target::target ompt_target_region..ompt_target_other_region;
    9 target::data_op ompt_target_data_op_alloc..ompt_target_data_op;
    10 target::submit ompt_target_submit..ompt_target_submit;
    11 callbacks::control_tool ompt_control_tool..ompt_control_tool;
    12 target::device_initialize ompt_device_initialize..ompt_device_initialize;
    13 target::device_finalize ompt_device_finalize..ompt_device_finalize;
    14 target::device_load ompt_device_load..ompt_device_load;
    15 target::device_unload ompt_device_unload..ompt_device_unload;
    16 callbacks::sync_region_wait ompt_wait_barrier..ompt_wait;
    17 callbacks::mutex_released ompt_mutex_released..ompt_mutex_released;
    18 tasks::dependences ompt_dependences..ompt_dependences;
    19 tasks::task_dependence ompt_task_dependence..ompt_task_dependence;
    20 callbacks::work ompt_loop_begin..ompt_work_end;
    21 callbacks::masked ompt_masked_begin..ompt_masked_end;
    22 target::map ompt_target_map..ompt_target_map;
    23 callbacks::sync_region ompt_sync_region_begin..ompt_sync_region_end;
    24 callbacks::lock_init ompt_lock_init..ompt_lock_init;
    25 callbacks::lock_destroy ompt_lock_destroy..ompt_lock_destroy;
    26 callbacks::mutex_acquire ompt_acquire_lock..ompt_test_lock;
    27 callbacks::mutex_acquired ompt_acquire_lock..ompt_test_lock_acquired;
    28 callbacks::nest_lock ompt_nest_lock..ompt_nest_lock;
    29 callbacks::flush ompt_flush..ompt_flush;
    30 callbacks::cancel ompt_cancel..ompt_cancel;
    31 callbacks::reduction ompt_reduction_begin..ompt_reduction_end;
    32 callbacks::dispatch ompt_dispatch..ompt_dispatch;
    33 target::target_emi ompt_target_region..ompt_target_other_region;
    34 target::data_op_emi ompt_target_data_op_alloc..ompt_target_data_op;
    35 target::submit_emi ompt_target_submit..ompt_target_submit;
    36 target::map_emi ompt_target_map..ompt_target_map;
    37 callbacks::error ompt_error..ompt_error;
}

/// The older event and the newer one.
const TWINS: [[c_uint; 2]; 4] = [[8, 33], [9, 34], [10, 35], [22, 36]];

/// What the runtime has said of our callback for an event, and 1 more; 0 if it has none of ours.
static ANSWERS: [AtomicU32; passed::EVENTS] = [const { AtomicU32::new(0) }; passed::EVENTS];

impl Event {
    /// Whether anything of it may be recorded.
    fn is_ours(&self) -> bool {
        // A session that is to come may want what this one does not.
        let may_change = hetrace_interpose::window::session_number() != 0 || !(0..FUNCTIONS).any(is_selected);
        let [first, last] = self.functions;
        may_change || (first..=last).any(is_selected)
    }

    /// Asks the runtime to report it to us. Returns what it says.
    fn ask(&self) -> c_uint {
        let answer = runtime::set_callback(self.number, self.callback.0);
        if let Some(place) = ANSWERS.get(self.number as usize) {
            place.store(answer + 1, Ordering::Relaxed);
        }
        // SAFETY: numbers.
        unsafe { ompt_tool_callback::at(self.number, answer) };
        answer
    }

    fn drop(&self) {
        runtime::set_callback(self.number, null());
        if let Some(place) = ANSWERS.get(self.number as usize) {
            place.store(0, Ordering::Relaxed);
        }
    }
}

fn event(number: c_uint) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.number == number)
}

/// What the runtime said of our callback; none if it has none of ours.
fn answer(number: c_uint) -> Option<c_uint> {
    ANSWERS.get(number as usize)?.load(Ordering::Relaxed).checked_sub(1)
}

/// Asks the runtime, which has just begun, for all that we want.
pub fn register() {
    for event in EVENTS.iter().filter(|event| event.is_ours()) {
        if TWINS.iter().all(|[older, newer]| ![*older, *newer].contains(&event.number)) {
            event.ask();
        }
    }
    for [older, newer] in TWINS {
        let events = event(older).zip(event(newer)).filter(|(_, newer)| newer.is_ours());
        if let Some((older, newer)) = events
            && newer.ask() < SOMETIMES
        {
            older.ask();
        }
    }
}

/// The next tool wants an event, or does not want it any more. Returns what the runtime says of it.
pub fn wanted(number: c_uint) -> c_uint {
    if let Some([older, newer]) = TWINS.iter().find(|twins| twins.contains(&number)) {
        choose(*older, *newer);
    }
    if let Some(answer) = answer(number) {
        return answer;
    }
    let twin = TWINS.iter().find(|twins| twins.contains(&number));
    let is_replaced = twin.is_some_and(|twins| twins.iter().any(|twin| answer(*twin).is_some()));
    if is_replaced {
        // The older one of two that the tool has asked for, as tools do that know both: the newer takes its place.
        return SOMETIMES;
    }
    // Nothing of it is recorded: the tool has it for itself.
    runtime::set_callback(number, passed::raw(number))
}

/// Takes the one of two events that the next tool knows, or else the newer.
fn choose(older: c_uint, newer: c_uint) {
    let Some((older, newer)) = event(older).zip(event(newer)) else { return };
    if answer(older.number).is_none() && answer(newer.number).is_none() {
        return;
    }
    let knows_older_only = !passed::raw(older.number).is_null() && passed::raw(newer.number).is_null();
    if knows_older_only && answer(older.number).is_none() {
        newer.drop();
        older.ask();
    } else if !knows_older_only && answer(newer.number).is_none() && newer.ask() >= SOMETIMES {
        older.drop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `ompt_callbacks_t`, as the model has it.
    fn all() -> BTreeSet<c_uint> {
        let model = include_str!("generated/model.json");
        let line =
            model.lines().find(|line| line.contains("{\"name\":\"ompt_callbacks_t\",\"values\"")).unwrap();
        let numbers = line.split(['[', ']', ',']).filter_map(|word| word.parse().ok());
        numbers.collect()
    }

    #[test]
    fn every_event_of_the_specification_has_a_callback() {
        let ours: BTreeSet<c_uint> = EVENTS.iter().map(|event| event.number).collect();
        assert_eq!(ours, all());
        assert!(EVENTS.len() == ours.len() && ours.iter().all(|number| (*number as usize) < passed::EVENTS));
    }

    #[test]
    fn every_function_is_recorded_by_an_event() {
        let of_events: BTreeSet<usize> =
            EVENTS.iter().flat_map(|event| event.functions[0]..=event.functions[1]).collect();
        let of_tool = [ompt_tool_start::INDEX, ompt_tool_callback::INDEX, ompt_code::INDEX];
        let all: BTreeSet<usize> = of_events.into_iter().chain(of_tool).collect();
        assert_eq!(all, (0..FUNCTIONS).collect());
    }
}

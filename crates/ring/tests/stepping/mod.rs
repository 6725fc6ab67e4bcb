//! Signal handlers between any two instructions of an operation.
//!
//! The processor's trap flag makes it raise SIGTRAP after every instruction. So a handler can come
//! at each step, once by once or at all of them, on the thread's stack and on one of its own; it can be interrupted
//! likewise itself, and it can leave by jumping away.

use std::arch::asm;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// For [`Stepping::run`]: at every step.
pub const EVERY: u64 = u64::MAX;
/// Steps of an operation that a handler comes at, each in a run of its own: of more, some are left out.
const SINGLE: u64 = 250;
const TRAP_FLAG: i64 = 0x100;

/// What handlers do, a `fn()`.
static WORK: AtomicUsize = AtomicUsize::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static AT: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicBool = AtomicBool::new(false);
/// Handlers are interrupted, too.
static DEEPER: AtomicBool = AtomicBool::new(false);
static DEPTH: AtomicU64 = AtomicU64::new(0);
/// The handler does not return to what it interrupted.
static JUMPS: AtomicBool = AtomicBool::new(false);
/// Stack pointer and address at which it goes on after a jump.
static LANDING: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

const RELAXED: Ordering = Ordering::Relaxed;

const STACK_BYTES: usize = 1 << 17;

thread_local! {
    /// A stack for handlers.
    static STACK: Cell<*mut u8> = Cell::new(Box::leak(vec![0; STACK_BYTES].into_boxed_slice()).as_mut_ptr());
}

/// All share one handler.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel passes the interrupted thread's context, which is the handler's to change.
    let registers = unsafe { &raw mut (*context).uc_mcontext.gregs };
    let go_on = || {
        // SAFETY: `registers` lies in the interrupted thread's context, which stays until the handler
        // returns.
        unsafe { (*registers)[libc::REG_EFL as usize] &= !TRAP_FLAG };
    };
    if DONE.load(RELAXED) {
        return go_on();
    }
    if DEPTH.load(RELAXED) > 0 {
        return work();
    }
    let step = STEPS.fetch_add(1, RELAXED);
    let at = AT.load(RELAXED);
    if at != EVERY {
        if step != at {
            return;
        }
        go_on();
    }
    DEPTH.store(1, RELAXED);
    if DEEPER.load(RELAXED) {
        trap_from_here();
        work();
        trap_no_more();
    } else {
        work();
    }
    DEPTH.store(0, RELAXED);
    if JUMPS.load(RELAXED) {
        // SAFETY: `registers` lies in the context that is the handler's to change; `call_and_land` has stored
        // both words, and its frame is below on the interrupted stack.
        unsafe {
            (*registers)[libc::REG_RSP as usize] = LANDING[0].load(RELAXED) as i64;
            (*registers)[libc::REG_RIP as usize] = LANDING[1].load(RELAXED) as i64;
        }
    }
}

fn work() {
    // SAFETY: `Stepping::new` has stored a `fn()` there, before any handler comes.
    let work: fn() = unsafe { std::mem::transmute(WORK.load(RELAXED)) };
    work();
}

#[inline(always)]
fn trap_from_here() {
    // SAFETY: sets the trap flag; the handler is installed.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
}

#[inline(always)]
fn trap_no_more() {
    // SAFETY: clears the trap flag.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// The handler is installed, and it is nobody else's turn.
pub struct Stepping {
    _turn: MutexGuard<'static, ()>,
}

impl Stepping {
    /// Handlers do `work` from now on.
    pub fn new(how: How, work: fn()) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        WORK.store(work as usize, RELAXED);
        for word in [&STEPS, &DEPTH] {
            word.store(0, RELAXED);
        }
        DEEPER.store(how.deeper, RELAXED);
        JUMPS.store(how.jumps, RELAXED);
        let stack = if how.other_stack { libc::SA_ONSTACK } else { 0 };
        // SAFETY: all bit patterns of a sigaction are valid; a stack of this thread's, which is leaked.
        unsafe {
            if how.other_stack {
                let memory = STACK.with(Cell::get);
                let alternate = libc::stack_t { ss_sp: memory.cast(), ss_flags: 0, ss_size: STACK_BYTES };
                assert_eq!(libc::sigaltstack(&raw const alternate, std::ptr::null_mut()), 0);
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = trapped as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | stack;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()), 0);
        }
        Stepping { _turn: turn }
    }

    /// Does it with a handler at a step of it, or at each. Returns at how many it could come.
    pub fn run<F: FnOnce()>(&self, at: u64, operation: F) -> u64 {
        AT.store(at, RELAXED);
        DONE.store(false, RELAXED);
        STEPS.store(0, RELAXED);
        call_and_land(move || {
            trap_from_here();
            operation();
            DONE.store(true, RELAXED);
        });
        DONE.store(true, RELAXED);
        DEPTH.store(0, RELAXED);
        STEPS.load(RELAXED)
    }
}

/// Calls it, and comes back when it returns, or when a handler jumps.
#[inline(never)]
fn call_and_land<F: FnOnce()>(operation: F) {
    extern "C" fn call<F: FnOnce()>(operation: *mut Option<F>) {
        // SAFETY: the place below, which nobody else uses meanwhile.
        if let Some(operation) = unsafe { (*operation).take() } {
            operation();
        }
    }
    let mut operation = Some(operation);
    // SAFETY: saves what a function must preserve, calls one, and restores it at a place that a
    // handler may jump to: like `setjmp`, but inside of one instruction of this function. What is
    // jumped over has no destructors.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "lea rcx, [rip + {landing}]",
            "mov [rcx], rsp",
            "lea rax, [rip + 2f]",
            "mov [rcx + 8], rax",
            "and rsp, -16",
            "call {call}",
            "2:",
            "lea rcx, [rip + {landing}]",
            "mov rsp, [rcx]",
            "pop rbp",
            "pop rbx",
            call = sym call::<F>,
            landing = sym LANDING,
            inout("rdi") &raw mut operation => _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("C"),
        );
    }
}

/// How handlers come.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    pub other_stack: bool,
    /// They are interrupted at each step themselves.
    pub deeper: bool,
    pub jumps: bool,
}

/// A few hundred of so many steps, evenly.
pub fn some_of(steps: u64) -> impl Iterator<Item = u64> {
    (0..steps).step_by(usize::try_from(steps / SINGLE + 1).expect("small"))
}

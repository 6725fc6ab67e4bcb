//! Every interleaving of threads that meet at a place for what was read of unwind tables, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_native --release`.
//!
//! The file is compiled here with loom's atomics. Each ordering that a test names was weakened to `Relaxed` once, and the
//! test failed.
#![cfg(loom)]

#[path = "../src/native/keyed.rs"]
mod keyed;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

use keyed::Keyed;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// A place, and what lies there.
type Shared = Arc<(Keyed, UnsafeCell<u64>)>;

fn shared() -> Shared {
    Arc::new((Keyed::new(), UnsafeCell::new(0)))
}

/// Reads or writes a copy, as `Copies::piece` does.
fn copy(shared: &Shared) -> Option<u64> {
    if shared.0.key() == 7 {
        return Some(shared.1.with(|p| unsafe { *p }));
    }
    if !shared.0.take() {
        return None;
    }
    shared.1.with_mut(|p| unsafe { *p = 5 });
    shared.0.leave(7);
    Some(5)
}

/// Who finds a copy finds all of it, and nobody writes it again. Release of the key in `leave`, Acquire of it in `key`.
#[test]
fn a_copy_is_complete() {
    loom::model(|| {
        let shared = shared();
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || copy(&shared))
        };
        assert!(matches!(copy(&shared), Some(5) | None));
        assert!(matches!(other.join().unwrap(), Some(5) | None));
        assert_eq!(copy(&shared), Some(5));
    });
}

/// What several threads change is one's at a time, who finds it as the one before left it. Release in `leave`, Acquire in
/// `take`.
#[test]
fn a_function_is_used_by_one_thread_at_a_time() {
    loom::model(|| {
        let shared = shared();
        let change = |shared: &Shared| {
            let taken = shared.0.take();
            if taken {
                shared.1.with_mut(|p| unsafe { *p += 1 });
                shared.0.leave(Keyed::FREE);
            }
            u64::from(taken)
        };
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || change(&shared))
        };
        let changed = change(&shared) + other.join().unwrap();
        assert!(changed >= 1 && shared.0.take());
        assert_eq!(shared.1.with(|p| unsafe { *p }), changed);
    });
}

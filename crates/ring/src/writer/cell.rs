//! Words of a [`Writer`](super::Writer): of one thread, and of the signal handlers that interrupt it.
//!
//! A handler may come between any two instructions and use the same writer, so no reference to a
//! writer is ever exclusive, and each word is an atomic that is loaded and stored *Relaxed*: a
//! plain `mov`. A `Cell` would not do: the compiler may keep its value in a register, split a
//! store, or repeat a load, since it assumes that nobody else changes it. Where the order of two
//! words matters to a handler, a `compiler_fence` stands between them; the processor shows a
//! thread its own stores in their order.
//!
//! Nothing here is for other threads. What these read of a writer is an atomic of its own
//! ([`Writer::owner`](super::Writer::owner)), and the ring has its own rules ([`crate::cursor`]).

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident($atomic:ty) of $value:ty = $zero:expr;)*) => { $(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug)]
        pub struct $name($atomic);

        impl $name {
            /// A word that is zero, as in cleared memory.
            #[allow(clippy::new_without_default, reason = "never made but in a writer")]
            pub const fn new() -> Self {
                $name(<$atomic>::new($zero))
            }

            /// The value now.
            #[inline(always)]
            pub fn get(&self) -> $value {
                self.0.load(Ordering::Relaxed)
            }

            /// Stores a value.
            #[inline(always)]
            pub fn set(&self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }
        }
    )* };
}

cells! {
    /// 64 bits.
    Word(AtomicU64) of u64 = 0;
    /// 32 bits.
    Half(AtomicU32) of u32 = 0;
    /// A truth value.
    Flag(AtomicBool) of bool = false;
}

impl Word {
    /// Adds in one instruction, so that a handler comes before or after it and never gets the
    /// same value. Returns the value before.
    #[inline(always)]
    pub fn fetch_add(&self, n: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let mut value = n;
            // SAFETY: the pointer is that of a live atomic, aligned, and everybody who accesses
            // the word does so atomically. Without a lock prefix the addition is atomic with
            // respect to this processor only, which is all that this thread and its handlers need.
            unsafe {
                std::arch::asm!(
                    "xadd qword ptr [{word}], {value}",
                    word = in(reg) self.0.as_ptr(),
                    value = inout(reg) value,
                    options(nostack)
                );
            }
            value
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        {
            self.0.fetch_add(n, Ordering::Relaxed)
        }
    }
}

/// A pointer.
#[repr(transparent)]
#[derive(Debug)]
pub struct Pointer<T>(AtomicPtr<T>);

impl<T> Pointer<T> {
    /// A null pointer.
    #[allow(clippy::new_without_default, reason = "never made but in a writer")]
    pub const fn new() -> Self {
        Pointer(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The pointer now.
    #[inline(always)]
    pub fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }

    /// Stores a pointer.
    #[inline(always)]
    pub fn set(&self, value: *mut T) {
        self.0.store(value, Ordering::Relaxed);
    }
}

//! The same work on many streams.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Does work on each of so many things, with as many threads as there are processors.
/// Results come in their order; after an error nothing new is begun.
pub(crate) fn in_parallel<T: Send>(
    count: usize,
    work: &(dyn Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(Vec::with_capacity(count)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count.max(1));
    let one = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let part = work(index);
            let Ok(mut done) = done.lock() else { return };
            match (&mut *done, part) {
                (Ok(all), Ok(part)) => all.push((index, part)),
                (Ok(_), Err(error)) => *done = Err(error),
                (Err(_), _) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(one);
        }
        one();
    });
    let mut all = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, part)| part).collect())
}

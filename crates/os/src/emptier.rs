//! The thread that empties what the kernel writes into, so that nothing has to be dropped while the other thread writes.
//!
//! ```text
//!  buffers ──► emptier: copies them ──► batches, in memory ──► worker: order, whose, write
//!              wakes at each quarter     at most Waiting's      at its own pace
//! ```
//! A storm of switches fills a buffer of 4 MiB in 15 ms, and whoever writes may have to wait for a processor longer than that.
//! Copying takes a sixth of what writing takes, so this thread is preferred where that is allowed: it sleeps nearly all
//! the time, and would have to do as much later.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{ClockId, Timespec};

use crate::clock::{nanoseconds, now};
use crate::intake::{Batch, Intake};
use crate::order::Waiting;
use crate::perf::preferred;

/// Longest sleep, in nanoseconds: what the buffers hold is lost with this process.
const NAP: i64 = 250_000_000;

/// What is said of a reader that is gone.
pub const READER_ENDED: &str = "its reader ended unexpectedly";
/// [`Feed::emptied`] of a thread that ended by itself.
const GONE: u64 = u64::MAX;

/// Who takes records out of what the kernel writes into.
#[derive(Debug)]
pub enum Feed {
    /// The reader does, when it asks for them: there could be no thread, or there is none yet.
    Own(Box<Intake>, u64),
    /// A thread.
    Thread(Emptier),
}

impl Default for Feed {
    fn default() -> Self {
        Feed::Own(Box::default(), 0)
    }
}

/// The thread, and what it hands over.
#[derive(Debug)]
pub struct Emptier {
    batches: Receiver<(u64, Option<Batch>)>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    emptied: u64,
    /// It took nothing, as too much waits.
    refused: bool,
}

/// What both threads know.
#[derive(Debug)]
struct Shared {
    /// It should look, or end.
    asked: OwnedFd,
    /// There are batches.
    filled: OwnedFd,
    ends: AtomicBool,
    /// Processor time of such threads, in nanoseconds.
    cpu_ns: Arc<AtomicU64>,
}

impl Feed {
    /// Returns what the reader empties itself, until there is a thread.
    pub fn intake(&mut self) -> Option<&mut Intake> {
        match self {
            Feed::Own(intake, _) => Some(intake),
            Feed::Thread(_) => None,
        }
    }

    /// Has a thread empty it from now on, if there can be one, which adds its processor time in nanoseconds to `cpu_ns`.
    pub fn begin(&mut self, waiting: &Arc<Waiting>, cpu_ns: &Arc<AtomicU64>) {
        let Feed::Own(intake, _) = self else { return };
        match Shared::new(cpu_ns) {
            // Without descriptors the reader goes on to empty it.
            Err(_) => {}
            Ok(shared) => {
                let intake = std::mem::take(intake);
                *self = Emptier::spawn(intake, Arc::new(shared), Arc::clone(waiting));
            }
        }
    }

    /// Returns until when all was taken, by the clock of records: what was visible then was handed over.
    pub fn emptied(&self) -> u64 {
        match self {
            Feed::Own(_, emptied) => *emptied,
            Feed::Thread(emptier) => emptier.emptied,
        }
    }

    /// Returns what can be polled: it is readable when there may be something to take.
    pub fn wakes(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Feed::Own(intake, _) => intake.wakes().collect(),
            Feed::Thread(emptier) => vec![emptier.shared.filled.as_fd()],
        }
    }

    /// Forgets that there was something to take.
    pub fn awake(&self) {
        match self {
            Feed::Own(intake, _) => intake.awake(),
            Feed::Thread(emptier) => clear(&emptier.shared.filled),
        }
    }

    /// Hands over what has been taken.
    pub fn take(&mut self, waiting: &Arc<Waiting>, mut put: impl FnMut(Batch)) {
        match self {
            Feed::Own(intake, emptied) => {
                if !waiting.is_full() {
                    *emptied = now();
                    put(intake.empty(waiting));
                }
            }
            Feed::Thread(emptier) => {
                while let Ok(batch) = emptier.batches.try_recv() {
                    emptier.note(batch, &mut put);
                }
                if emptier.refused && !waiting.is_full() {
                    emptier.refused = false;
                    signal(&emptier.shared.asked);
                }
            }
        }
    }

    /// Has all be taken that is visible now, and hands it over. Less if too much waits.
    pub fn take_all(&mut self, waiting: &Arc<Waiting>, mut put: impl FnMut(Batch)) {
        self.take(waiting, &mut put);
        let Feed::Thread(emptier) = self else { return };
        let asked = now();
        signal(&emptier.shared.asked);
        // A thread that is gone takes nothing any more.
        while let Ok(batch) = emptier.batches.recv() {
            let at = batch.0;
            emptier.note(batch, &mut put);
            if at >= asked {
                return;
            }
        }
        emptier.emptied = GONE;
    }

    /// Returns whether the thread has ended by itself, so that nothing is taken any more.
    pub fn is_gone(&self) -> bool {
        self.emptied() == GONE
    }
}

impl Emptier {
    fn spawn(intake: Box<Intake>, shared: Arc<Shared>, waiting: Arc<Waiting>) -> Feed {
        let (sender, batches) = mpsc::channel();
        let (hand, take) = mpsc::channel::<Box<Intake>>();
        let theirs = Arc::clone(&shared);
        let work = move || {
            if let Ok(intake) = take.recv() {
                empty(*intake, &theirs, &waiting, &sender);
            }
        };
        match thread::Builder::new().name("hetrace-os-take".to_owned()).spawn(work) {
            Ok(thread) => {
                // It waits for this.
                let _ = hand.send(intake);
                Feed::Thread(Emptier { batches, shared, thread: Some(thread), emptied: 0, refused: false })
            }
            Err(_) => Feed::Own(intake, 0),
        }
    }

    fn note(&mut self, (at, batch): (u64, Option<Batch>), put: &mut impl FnMut(Batch)) {
        match batch {
            Some(batch) => {
                self.emptied = at;
                put(batch);
            }
            None => self.refused = true,
        }
    }
}

impl Drop for Emptier {
    /// Ends the thread: what it empties is closed then.
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        signal(&self.shared.asked);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl Shared {
    fn new(cpu_ns: &Arc<AtomicU64>) -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self {
            asked: event()?,
            filled: event()?,
            ends: AtomicBool::new(false),
            cpu_ns: Arc::clone(cpu_ns),
        })
    }
}

/// The thread: empties whatever is filled to its mark, until it is to end or nobody takes what it hands over.
fn empty(mut intake: Intake, shared: &Shared, waiting: &Arc<Waiting>, to: &Sender<(u64, Option<Batch>)>) {
    preferred::prefer();
    let mut accounted = 0;
    while !shared.ends.load(Ordering::Relaxed) {
        let at = now();
        let batch = (!waiting.is_full()).then(|| intake.empty(waiting));
        let taken = nanoseconds(ClockId::ThreadCPUTime);
        shared.cpu_ns.fetch_add(taken.saturating_sub(accounted), Ordering::Relaxed);
        accounted = taken;
        if to.send((at, batch)).is_err() {
            return;
        }
        signal(&shared.filled);
        let mut waited = vec![PollFd::new(&shared.asked, PollFlags::IN)];
        waited.extend(intake.wakes().map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)));
        // An interrupted sleep is a short one.
        let _ = poll(&mut waited, Some(&Timespec { tv_sec: 0, tv_nsec: NAP }));
        clear(&shared.asked);
        intake.awake();
    }
}

/// Makes a counter readable.
fn signal(event: &OwnedFd) {
    // It has room for any number of ones.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Makes a counter unreadable.
fn clear(event: &OwnedFd) {
    let _ = rustix::io::read(event, &mut [0; 8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Order, Piece, Taken};
    use crate::perf::bpf::{Buffer, Buffers};

    /// What is written into the buffer is to be taken by a thread.
    fn begun(order: &Order) -> (Buffer, Feed, Arc<AtomicU64>) {
        let buffer = Buffer::of_file();
        let intake = Intake { buffers: Some(Buffers::of_one(buffer.same())), ..Intake::default() };
        let (mut feed, cpu_ns) = (Feed::Own(Box::new(intake), 0), Arc::default());
        feed.begin(order.waiting(), &cpu_ns);
        assert!(feed.intake().is_none(), "a thread");
        (buffer, feed, cpu_ns)
    }

    fn add(order: &mut Order, batch: Batch) {
        batch.taken.into_iter().for_each(|taken| order.add(taken));
    }

    fn ask(feed: &Feed) {
        let Feed::Thread(emptier) = feed else { panic!("no thread") };
        signal(&emptier.shared.asked);
    }

    fn times(order: &mut Order) -> Vec<u64> {
        let mut times = Vec::new();
        let more = order.release(u64::MAX, usize::MAX, |_, piece| match piece {
            Piece::Words(words) => times.push(words[0]),
            Piece::Record(record) => panic!("{record:?}"),
        });
        assert!(!more);
        times
    }

    #[test]
    fn a_buffer_is_emptied_while_nobody_takes_what_was_in_it() {
        let mut order = Order::default();
        let (buffer, mut feed, cpu_ns) = begun(&order);
        // Ten times what the buffer holds.
        for time in 0..10 * 64 {
            (0..64).for_each(|n| buffer.write(&[64 * time + n, 0, 3 << 8]));
            ask(&feed);
            while buffer.unread() > 0 {
                thread::yield_now();
            }
        }
        let waiting = Arc::clone(order.waiting());
        let begin = now();
        feed.take_all(&waiting, |batch| add(&mut order, batch));
        assert!(feed.emptied() >= begin);
        assert_eq!(times(&mut order), (0..64 * 640).collect::<Vec<_>>());
        assert!(cpu_ns.load(Ordering::Relaxed) > 0);
        drop(feed);
        buffer.write(&[1, 0, 3 << 8]);
        assert_eq!(buffer.unread(), 24, "the thread has ended");
    }

    #[test]
    fn nothing_is_taken_while_too_much_waits_and_all_once_it_does_not() {
        let mut order = Order::default();
        let (buffer, mut feed, _) = begun(&order);
        let waiting = Arc::clone(order.waiting());
        feed.take_all(&waiting, |batch| add(&mut order, batch));
        let all = Taken::words(0, vec![0; (1 << 30) / 8 + 1], &waiting);
        assert!(waiting.is_full());
        // What it had begun to take before.
        feed.take_all(&waiting, |batch| add(&mut order, batch));
        let emptied = feed.emptied();
        buffer.write(&[7, 0, 3 << 8]);
        feed.take_all(&waiting, |batch| add(&mut order, batch));
        assert_eq!((buffer.unread(), feed.emptied(), times(&mut order)), (24, emptied, vec![]));
        drop(all);
        // It is asked to look again by whoever takes.
        feed.take(&waiting, |batch| add(&mut order, batch));
        while buffer.unread() > 0 {
            thread::yield_now();
        }
        feed.take_all(&waiting, |batch| add(&mut order, batch));
        assert_eq!(times(&mut order), [7]);
        assert!(feed.emptied() > emptied);
    }
}

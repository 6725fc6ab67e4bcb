//! Names of the functions on native stacks: what addresses of programs and libraries stand for.
//!
//! A thread of the launcher finds them out while the program runs: the drainer must not wait for it, as files with debug
//! information are large, and by the end nearly all are known. They go into the trace, so that a trace shows the same on
//! any machine and after any update; analyses read nothing else.

pub mod file;

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hetrace_format::Handle;
use hetrace_format::define::{Module, Symbol};

use file::File;

/// An address of a module.
#[derive(Debug, Clone)]
pub struct Place {
    pub module: Arc<Module>,
    /// As its file has it.
    pub address: u64,
    /// Where no line is known, the function's name is to have the place in the function, too (`solve+0x42`): it alone
    /// distinguishes calls that the function makes.
    pub with_offset: bool,
}

/// A question, and where the answer goes.
type Question = (Place, Sender<Answer>);

/// What an address stands for, the innermost function first; nothing if that is not known. And why nothing of its module
/// can be known.
type Answer = (Vec<Symbol>, Option<Arc<str>>);

/// The thread that finds out, once there is something to ask.
#[derive(Debug, Default)]
pub struct Symbols {
    questions: Mutex<Option<Sender<Question>>>,
}

impl Symbols {
    fn ask(&self, question: Question) {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let questions = questions.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            // Without a thread, functions have no names: their places in their modules are shown.
            let work = move || resolve_all(&receiver);
            _ = thread::Builder::new().name("hetrace-symbols".to_owned()).spawn(work);
            sender
        });
        _ = questions.send(question);
    }
}

/// What was asked of one process's stacks.
#[derive(Debug, Default)]
pub struct Asked {
    answers: Option<(Sender<Answer>, Receiver<Answer>)>,
    pending: usize,
    notes: BTreeSet<Arc<str>>,
}

impl Asked {
    /// Asks what an address stands for.
    pub fn ask(&mut self, symbols: &Symbols, place: Place) {
        let (sender, _) = self.answers.get_or_insert_with(channel);
        symbols.ask((place, sender.clone()));
        self.pending += 1;
    }

    /// Whether there are questions without an answer.
    pub fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Takes what was found out, and waits for the rest for so long.
    pub fn take(&mut self, patience: Duration) -> Vec<Symbol> {
        let mut found = Vec::new();
        let Some((_, receiver)) = &self.answers else { return found };
        let until = Instant::now() + patience;
        while self.pending > 0 {
            match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((symbols, note)) => {
                    found.extend(symbols);
                    self.notes.extend(note);
                }
                Err(_) => break,
            }
            self.pending -= 1;
        }
        found
    }

    /// Takes what is to be said of modules of which nothing can be known.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes).iter().map(ToString::to_string).collect()
    }
}

/// Serves requests until none can come any more.
fn resolve_all(questions: &Receiver<Question>) {
    // Beside the program, and after it.
    _ = rustix::process::nice(10);
    let mut files: HashMap<u64, File> = HashMap::new();
    let mut known: HashMap<(u64, u64, bool), Vec<Symbol>> = HashMap::new();
    while let Ok((place, answer)) = questions.recv() {
        let Place { module, address, with_offset } = &place;
        let file = files.entry(module.module.0).or_insert_with(|| File::open(module));
        let symbols = known.entry((module.module.0, *address, *with_offset)).or_insert_with(|| {
            let found = file.symbols(*address).into_iter().zip(0..);
            found.map(|(found, level)| symbol(&place, level, found)).collect()
        });
        _ = answer.send((symbols.clone(), file.unknown.clone()));
    }
}

fn symbol(place: &Place, level: u32, found: file::Found) -> Symbol {
    let Place { module, address, with_offset } = place;
    let file::Found { mut function, file, line, offset } = found;
    if let Some(offset) = offset.filter(|_| *with_offset && line == 0) {
        function += &format!("+{offset:#x}");
    }
    Symbol { module: module.module, address: Handle(*address), level, function, file, line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_program() -> Arc<Module> {
        let path = std::env::current_exe().expect("a path");
        let build_id = file::build_id(&path).expect("a program");
        let path = path.to_string_lossy().into_owned();
        Arc::new(Module { module: Handle(7), build_id, path, ..Module::default() })
    }

    #[test]
    fn answers_come_to_those_who_asked() {
        let symbols = Symbols::default();
        let mut asked = [Asked::default(), Asked::default()];
        assert!(asked[0].take(Duration::from_secs(60)).is_empty(), "nothing was asked");
        let module = this_program();
        let address = file::tests::address_of("answers_come_to_those_who_asked");
        for asked in &mut asked {
            asked.ask(&symbols, Place { module: Arc::clone(&module), address, with_offset: false });
            asked.ask(&symbols, Place { module: Arc::clone(&module), address: 1, with_offset: false });
        }
        for asked in &mut asked {
            let found = asked.take(Duration::from_secs(60));
            let [symbol, ..] = &found[..] else { panic!("one is known") };
            assert!(symbol.function.contains("answers_come_to_those_who_asked"), "{symbol:?}");
            assert_eq!((symbol.module, symbol.address), (Handle(7), Handle(address)));
            assert!(found.iter().all(|symbol| symbol.address == Handle(address)), "{found:?}");
            assert_eq!(asked.pending, 0);
        }
    }
}

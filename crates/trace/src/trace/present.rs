//! Which APIs occur in a trace at all.

use hetrace_ctf::read::Trace as Streams;

use super::class::{Class, Classes};
use super::functions::Functions;

/// By API: whether a stream has its calls. A stream is taken to be of one class, as its first
/// packet is; what cannot be read may be anything.
pub(super) fn present(streams: &Streams, classes: &Classes, functions: &Functions) -> Vec<bool> {
    let mut present = vec![false; functions.apis().len()];
    for mut stream in streams.streams() {
        let Some(first) = stream.next_event() else { continue };
        let Ok(event) = first else { return vec![true; present.len()] };
        let class = event.stream_class();
        let position = streams.class().streams.iter().position(|known| std::ptr::eq(known, class));
        for class in classes.of_stream(position.unwrap_or(usize::MAX)) {
            let api = match class {
                Class::Entry(function) | Class::Exit(function, _) | Class::Fold(function, ..) => {
                    functions.get(*function).api
                }
                _ => continue,
            };
            present.get_mut(api).into_iter().for_each(|there| *there = true);
        }
    }
    present
}

//! Memory of what has ended is used again.

use hetrace_tests::torture::check;

#[test]
fn threads_in_sequence() {
    check("threads-in-sequence");
}

#[test]
fn images_in_sequence_cuda() {
    check("images-in-sequence-cuda");
}

#[test]
fn library_reopened() {
    check("library-reopened");
}

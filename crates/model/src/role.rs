//! What a function does, in words that are the same for every API.

/// Every role with its meaning. Analyses ask for roles, never for names.
pub const ROLES: &[(&str, &str)] = &[
    ("alloc", "allocates memory that the program addresses"),
    ("barrier", "enqueues a barrier"),
    ("blocks", "may wait for a device before it returns"),
    ("build", "compiles or links device code"),
    ("callback", "registers a function of the program to be called later"),
    ("collective", "enqueues an operation among several ranks"),
    ("copy", "enqueues a copy between device objects"),
    ("create", "makes an object; the program owns one reference"),
    ("enqueue", "puts a command into a queue"),
    ("entry-point", "hands out the address of another function"),
    ("fill", "enqueues a fill of device memory with a pattern"),
    ("flush", "hands enqueued commands to the device"),
    ("free", "frees memory that the program addressed"),
    ("glue", "written by a compiler around a call that is told the same: recorded in full mode only"),
    ("interop", "shares an object with another API"),
    ("launch", "enqueues device code"),
    ("map", "makes device memory addressable by the host"),
    ("mark", "marks a moment with a message of the program"),
    ("marker", "enqueues a marker"),
    ("migrate", "moves memory between devices"),
    ("name", "names what it creates, else the object, thread or category before the parameter `name`"),
    ("native", "enqueues a function of the host"),
    ("poll", "asks for a state that changes by itself"),
    ("query", "asks for a property"),
    ("range-end", "ends the range that the parameter `id` tells, whichever thread began it"),
    ("range-pop", "ends the range that this thread pushed last in the domain"),
    ("range-push", "begins a range on this thread, inside those that it pushed before in the domain"),
    ("range-start", "begins a range that any thread may end; the result tells which"),
    ("read", "enqueues a transfer from device to host"),
    ("record", "appends a command to a command buffer"),
    ("release", "gives back one reference of an object"),
    ("retain", "takes one more reference of an object"),
    ("set-arg", "sets an argument of device code"),
    ("state", "changes the state of an object"),
    ("sync", "waits for commands to complete"),
    ("timer", "reads a clock"),
    ("unmap", "ends the mapping of device memory"),
    ("write", "enqueues a transfer from host to device"),
];

/// Whether `name` is one of [`ROLES`].
pub fn is_role(name: &str) -> bool {
    ROLES.iter().any(|(role, _)| *role == name)
}

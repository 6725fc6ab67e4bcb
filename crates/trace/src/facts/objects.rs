//! Types of an API's objects, by what its model says of them.

use std::borrow::Cow;

use hetrace_model::{Collective, Direction, Follow, Function, Kind, Model, Param};

/// A type of objects that functions make and programs release.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Its name in the API.
    pub name: String,
    /// References are counted.
    pub counted: bool,
    /// Programs are to give it back.
    pub leaks: bool,
    /// Something to wait for.
    pub event: bool,
    /// An event that the program may complete itself.
    pub completed: bool,
    /// What all others belong to.
    pub context: bool,
    /// Where commands go.
    pub queue: bool,
    /// It holds memory.
    pub memory: bool,
}

/// Returns whether a type is one of handles.
pub fn is_handle(model: &Model, name: &str) -> bool {
    model.types.get(name).is_some_and(|t| t.kind == Kind::Handle)
}

/// Returns whether a function hands something to a device, by its role `enqueue` or as it has a command. (Reports that
/// count calls also have those as enqueuing that only have a role of what is moved:
/// [`Function::enqueues`](crate::trace::Function::enqueues).)
pub fn enqueues(function: &Function) -> bool {
    function.has_role("enqueue") || function.has_command()
}

/// Returns the name of the parameter, or of the member of a structure, that says in the order of which queue a call
/// works: the queue of its command or, of a function without one, that which its API calls a queue.
pub fn queue_of(function: &Function) -> Option<&str> {
    let of_command = function.command.as_ref().and_then(|command| command.queue.as_deref());
    of_command.or(function.queue.as_deref())
}

/// Returns the types of the parameters that say where a command goes.
pub fn queue_types(model: &Model) -> Vec<String> {
    let typed = model.functions.iter().filter_map(|f| f.param(&f.queue_of_command()?));
    each_once(typed.filter(|p| p.pointers == 0))
}

/// Returns the types of parameters.
fn each_once<'m>(params: impl Iterator<Item = Cow<'m, Param>>) -> Vec<String> {
    params.fold(Vec::new(), |mut types, param| {
        if !types.contains(&param.base) {
            types.push(param.into_owned().base);
        }
        types
    })
}

/// Returns the names of the parameters that may have the queue of a collective: handles that are not the communicator.
pub fn queues_of_collective<'m>(
    model: &Model,
    function: &'m Function,
    about: &Collective,
) -> impl Iterator<Item = &'m str> {
    let may_be = |p: &&Param| p.pointers == 0 && p.name != about.communicator && is_handle(model, &p.base);
    function.params.iter().filter(may_be).map(|p| p.name.as_str())
}

/// Returns the types of objects that hold memory.
pub fn memory_types(model: &Model) -> Vec<&str> {
    model.functions.iter().filter(|f| f.memory().is_some()).filter_map(|f| f.creates.as_deref()).collect()
}

/// Returns the types of events: what functions that enqueue yield one of, for the command.
pub fn event_types(model: &Model) -> Vec<&str> {
    let Some(yields) = model.event.as_deref() else { return Vec::new() };
    let enqueue = model.functions.iter().filter(|f| f.has_role("enqueue"));
    let yielded =
        enqueue.filter_map(|f| parameter(f, yields).filter(|p| is_out(p, &p.base)).map(|p| p.base.as_str()));
    yielded.fold(Vec::new(), |mut types, base| {
        if !types.contains(&base) {
            types.push(base);
        }
        types
    })
}

/// Returns the types of kernels whose arguments are set by calls of their own.
pub fn kernel_types(model: &Model) -> Vec<&str> {
    let setters = model.functions.iter().filter(|f| f.has_role("set-arg"));
    let set = |f: &Function| f.params.first().filter(|p| p.pointers == 0).map(|p| p.base.clone());
    let named: Vec<String> = setters.filter_map(set).collect();
    model.types.names().filter(|name| named.iter().any(|n| n == name)).collect()
}

/// Returns the parameter with the object that a function releases or retains, if there is no doubt: the only one, of a
/// type that functions create.
pub fn counted<'m>(model: &Model, function: &'m Function) -> Option<&'m Param> {
    let [param] = function.params.as_slice() else { return None };
    let created = model.functions.iter().any(|c| c.creates_a(&param.base));
    // Events are made by what enqueues.
    let out = |c: &Function| {
        c.has_role("enqueue") && c.may_mention(&param.base) && c.params.iter().any(|p| is_out(p, &param.base))
    };
    let event = || is_handle(model, &param.base) && model.functions.iter().any(out);
    // `toyFree(toy *)` ends what the address leads to.
    let behind = param.pointers == 1 && param.direction == Direction::In && param.follow == Follow::Pointee;
    ((param.pointers == 0 || behind) && (created || event())).then_some(param)
}

/// Returns the types of an API's objects that can be released.
pub fn object_types(model: &Model) -> Vec<ObjectType> {
    let mut types: Vec<ObjectType> = Vec::new();
    let queues = model.functions.iter().filter_map(|f| {
        let of_command = f.queue_of_command();
        f.param(&of_command.or_else(|| f.queue().map(Cow::Borrowed))?)
    });
    let queues = each_once(queues);
    let (memory, yielded) = (memory_types(model), event_types(model));
    for f in model.functions.iter().filter(|f| f.has_role("release")) {
        let Some(param) = counted(model, f) else { continue };
        if types.iter().any(|k| k.name == param.base) {
            continue;
        }
        let base = param.base.as_str();
        let made = |c: &Function| {
            let (create, enqueue) = (c.has_role("create"), c.has_role("enqueue"));
            (create && c.creates_a(base))
                || (enqueue && c.may_mention(base) && c.params.iter().any(|p| is_out(p, base)))
        };
        let retained = |r: &Function| {
            r.has_role("retain") && r.may_mention(base) && counted(model, r).is_some_and(|p| p.base == base)
        };
        let waited = |w: &Function| {
            (w.has_role("sync") || w.has_role("poll"))
                && w.may_mention(base)
                && w.params.iter().any(|p| p.base == base && p.direction != Direction::Out)
        };
        let completes = |c: &Function| {
            c.has_role("state")
                && c.may_mention(base)
                && c.params.iter().any(|p| p.base == base && p.pointers == 0)
        };
        let is_queue = queues.iter().any(|queue| queue == base);
        types.push(ObjectType {
            name: base.to_owned(),
            counted: model.functions.iter().any(retained),
            // Domains and texts of APIs that only mark ranges are meant to live as long as the program.
            leaks: model.functions.iter().any(made)
                && model.functions.iter().any(|f| f.has_role("compute") || enqueues(f)),
            event: !is_queue
                && model.context.as_deref() != Some(base)
                && model.functions.iter().any(|f| f.has_role("marker") || f.has_role("enqueue"))
                && model.functions.iter().any(|w| w.has_role("sync") && waited(w)),
            completed: yielded.contains(&base) && model.functions.iter().any(completes),
            context: model.context.as_deref() == Some(base),
            queue: is_queue,
            memory: memory.contains(&base),
        });
    }
    types
}

fn parameter<'m>(function: &'m Function, name: &str) -> Option<&'m Param> {
    function.params.iter().find(|p| p.name == name)
}

fn is_out(param: &Param, base: &str) -> bool {
    param.base == base && param.pointers == 1 && param.direction == Direction::Out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        serde_json::from_str(include_str!("demo.json")).expect("demo.json is a model")
    }

    #[test]
    fn types_are_what_functions_do_with_them() {
        let model = model();
        let types = object_types(&model);
        let of = |name: &str| types.iter().find(|t| t.name == name).expect(name);
        let (queue, event) = (of("demoQueue"), of("demoEvent"));
        assert!(queue.queue && !queue.event && queue.leaks, "{queue:?}");
        assert!(event.event && !event.queue && !event.completed && event.leaks, "{event:?}");
        assert_eq!(event_types(&model), ["demoEvent"]);
        assert!(queue_types(&model).iter().all(|name| *name == "demoQueue"));
        assert!(is_handle(&model, "demoQueue") && !is_handle(&model, "int"));
    }

    #[test]
    fn the_queue_of_a_collective_is_a_handle_and_not_its_communicator() {
        let model = model();
        let enqueue = model.functions.iter().find(|f| f.command.is_some()).expect("one that enqueues");
        let queue = queue_of(enqueue).expect("it has a queue");
        let about = |communicator: &str| {
            let text = format!(r#"{{"operation": "all-reduce", "communicator": "{communicator}"}}"#);
            serde_json::from_str(&text).expect("a collective")
        };
        let names = |communicator: &str| -> Vec<&str> {
            let about: Collective = about(communicator);
            queues_of_collective(&model, enqueue, &about).collect()
        };
        assert!(names("nothing").contains(&queue) && !names(queue).contains(&queue));
    }
}

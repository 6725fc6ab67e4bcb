//! The functions of all APIs in one numbering.

use hetrace_model::Model;

/// A function's number in the trace, over all APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// As a position in a table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function that may occur in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Position of its API in [`Functions::apis`]; of its model too, if it has one.
    pub api: usize,
    /// Position in the model; none of a function that no model describes.
    pub index: Option<usize>,
    /// Its name.
    pub name: String,
    /// Whether it hands work to a device.
    pub enqueues: bool,
    /// Whether its calls may run code of the program that has nothing to do with them: a runtime reports that a thread
    /// waits, and gives it tasks meanwhile. What they call is called by the program.
    pub hosts: bool,
}

/// All functions.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    all: Vec<Function>,
    apis: Vec<String>,
    /// Number of the first function of each model.
    first: Vec<u32>,
    /// By function, where its entry says which code makes the call, if any does.
    code: Vec<Option<usize>>,
}

/// What puts work on a device by its role, when the model names no command.
const ENQUEUES: [&str; 11] =
    ["enqueue", "launch", "read", "write", "copy", "fill", "map", "unmap", "migrate", "marker", "barrier"];

impl Functions {
    pub(super) fn new(models: &[Model]) -> Self {
        let mut functions = Self::default();
        for (api, model) in models.iter().enumerate() {
            functions.first.push(functions.len());
            functions.apis.push(model.api.clone());
            for (index, f) in model.functions.iter().enumerate() {
                functions.all.push(Function {
                    api,
                    index: Some(index),
                    name: f.name.clone(),
                    enqueues: ENQUEUES.iter().any(|r| f.has_role(r)) || f.has_command(),
                    hosts: model.interpose.reported && f.has_role("state"),
                });
            }
        }
        functions
    }

    fn len(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// The number of a model's function.
    pub(super) fn of_model(&self, api: usize, index: usize) -> Option<FunctionId> {
        let first = *self.first.get(api)? as usize;
        let id = FunctionId(u32::try_from(first + index).ok()?);
        (self.all.get(id.index())?.api == api).then_some(id)
    }

    /// The number of a function by name; a new one if no model describes it.
    pub(super) fn by_name(&mut self, api: &str, name: &str) -> FunctionId {
        let api = self.apis.iter().position(|a| a == api).unwrap_or_else(|| {
            self.apis.push(api.to_owned());
            self.apis.len() - 1
        });
        let known = |f: &Function| f.api == api && f.name == name;
        let at = self.all.iter().position(known).unwrap_or_else(|| {
            self.all.push(Function {
                api,
                index: None,
                name: name.to_owned(),
                enqueues: false,
                hosts: false,
            });
            self.all.len() - 1
        });
        FunctionId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// A function by its number, which must be of this trace.
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.all[id.index()]
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Function] {
        &self.all
    }

    /// A function's entry says in this field where in the program it is called.
    pub(super) fn says_code(&mut self, id: FunctionId, field: usize) {
        if self.code.len() <= id.index() {
            self.code.resize(id.index() + 1, None);
        }
        self.code[id.index()] = Some(field);
    }

    /// The field of a function's entry that says where in the program it is called: by an address, which
    /// [`Stacks::of_code`](crate::stacks::Stacks::of_code) makes a stack.
    #[inline]
    pub fn code_field(&self, id: FunctionId) -> Option<usize> {
        self.code.get(id.index()).copied().flatten()
    }

    /// The position of an API.
    pub(super) fn api(&self, name: &str) -> Option<usize> {
        self.apis.iter().position(|api| api == name)
    }

    /// Whether any function [hosts](Function::hosts).
    pub fn any_hosts(&self) -> bool {
        self.all.iter().any(|function| function.hosts)
    }

    /// Names of the APIs: those with a model first, in the models' order.
    pub fn apis(&self) -> &[String] {
        &self.apis
    }
}

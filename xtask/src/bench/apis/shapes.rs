//! Which functions of APIs are compared: those that do nothing but be recorded, by how many values that takes.

use anyhow::{Result, bail};
use hetrace_model::layout::{Event, Phase, Shape as Encoded, Source, events_of};
use hetrace_model::{Function, Model};

use crate::model::load;

/// How many values a call records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Numbers and addresses, before it.
    pub before: u32,
    /// Numbers behind its pointers, after it; its result is not counted.
    pub after: u32,
    /// Short texts, before it.
    pub texts: u32,
}

impl Shape {
    /// So many before and after.
    pub const fn new(before: u32, after: u32) -> Self {
        Shape { before, after, texts: 0 }
    }

    /// As tables have it.
    pub fn text(&self) -> String {
        format!("{}{} + {}", self.before, "t".repeat(self.texts as usize), self.after)
    }

    /// The same with a text before.
    pub const fn with_text(self) -> Self {
        Shape { texts: self.texts + 1, ..self }
    }
}

/// A function that is compared.
#[derive(Debug)]
pub struct Chosen {
    /// Its name.
    pub function: String,
    /// What it records.
    pub shape: Shape,
}

/// What of an API is compared.
#[derive(Debug)]
pub struct Compared {
    /// The name of its library.
    pub soname: String,
    /// Libraries of which one must be on the machine for it to be traced.
    pub requires: Vec<String>,
    /// Its functions, one of each shape.
    pub functions: Vec<Chosen>,
}

/// How many functions of an API are compared.
const MANY: usize = 4;

/// Chooses functions of an API, of each shape one, those of shapes that are `known` first (all if none is), and the names of
/// libraries; `None` if it has no library, or no such function.
///
/// # Errors
/// The model has problems.
pub fn choose(api: &str, known: &[Shape]) -> Result<Option<Compared>> {
    let (extracted, semantics) = load(api)?;
    let Ok(model) = hetrace_model::resolve(&extracted, &semantics) else { bail!("its model has problems") };
    let Some(soname) = model.interpose.libraries.first() else { return Ok(None) };
    let mut found: Vec<Chosen> = Vec::new();
    for (i, f) in model.functions.iter().enumerate().filter(|(_, f)| plain(f)) {
        let Some(shape) = shape(&model, f, i) else { continue };
        if !found.iter().any(|c| c.shape == shape) {
            found.push(Chosen { function: f.name.clone(), shape });
        }
    }
    // Those with which something can be compared at once, then the others, the smallest first.
    found.sort_by_key(|c| (!known.is_empty() && !known.contains(&c.shape), c.shape));
    if !known.is_empty() {
        found.truncate(MANY);
    }
    let requires = model.interpose.requires.iter().filter(|name| !name.starts_with('/')).cloned().collect();
    Ok((!found.is_empty()).then(|| Compared { soname: soname.clone(), requires, functions: found }))
}

/// Whether a call of it is recorded and nothing else.
fn plain(f: &Function) -> bool {
    let more = ["sync", "wait", "poll", "range-push", "range-pop"];
    // Extensions' functions are handed out by address, and so are not what a program is linked to.
    f.extension.is_none()
        && f.hook.is_none()
        && f.command.is_none()
        && f.blocking.is_none()
        && f.changed.is_none()
        && f.collective.is_none()
        && !f.may_fold()
        && !more.iter().any(|role| f.has_role(role))
}

/// What it records; `None` if that is more than numbers and texts before it.
fn shape(model: &Model, f: &Function, index: usize) -> Option<Shape> {
    let events = events_of(model, f, index);
    let of = |phase: Phase| events.iter().find(|event: &&Event| event.phase == phase);
    let (entry, exit) = (of(Phase::Entry)?, of(Phase::Exit)?);
    let count = |event: &Event, is: &dyn Fn(&Encoded) -> bool| {
        let own = event.fields.iter().filter(|field| field.source != Source::Return);
        u32::try_from(own.filter(|field| is(&field.shape)).count()).unwrap_or(u32::MAX)
    };
    let is_number = |shape: &Encoded| matches!(shape, Encoded::Int(_));
    let is_text = |shape: &Encoded| matches!(shape, Encoded::Text);
    let known = entry.fields.iter().all(|field| is_number(&field.shape) || is_text(&field.shape))
        && exit.fields.iter().all(|field| is_number(&field.shape));
    known.then(|| Shape {
        before: count(entry, &is_number),
        after: count(exit, &is_number),
        texts: count(entry, &is_text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_all_shapes_of_opencl_are_found() {
        let Compared { soname, functions: chosen, .. } = choose("opencl", &[]).unwrap().unwrap();
        assert_eq!(soname, "libOpenCL.so.1");
        let shapes: Vec<Shape> = chosen.iter().map(|c| c.shape).collect();
        for shape in [Shape::new(1, 0), Shape::new(2, 0)] {
            assert!(shapes.contains(&shape), "{chosen:?}");
        }
    }

    #[test]
    fn others_have_the_shapes_that_are_known() {
        // Without them, one of nothing would come first.
        let known = [Shape::new(1, 0), Shape::new(2, 0)];
        let Compared { functions: chosen, requires, .. } = choose("hip", &known).unwrap().unwrap();
        // Libraries, AMD's and chipStar's, and no devices.
        let is_library = |name: &String| name.starts_with("libamdhip64") || name.starts_with("libCHIP");
        assert!(!requires.is_empty() && requires.iter().all(is_library), "{requires:?}");
        assert_eq!(chosen.iter().map(|c| c.shape).take(2).collect::<Vec<_>>(), known, "{chosen:?}");
        assert_eq!(chosen.len(), MANY);
        assert!(choose("itt", &known).unwrap().is_none());
    }
}

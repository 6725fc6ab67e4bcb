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

/// How many functions of an API are compared.
const MANY: usize = 4;

/// Chooses functions of an API, one of each shape that is known (of each that there is if none is), and the name of its
/// library; `None` if it has no library.
///
/// # Errors
/// The model has problems.
pub fn choose(api: &str, known: &[Shape]) -> Result<Option<(String, Vec<Chosen>)>> {
    let (extracted, semantics) = load(api)?;
    let Ok(model) = hetrace_model::resolve(&extracted, &semantics) else { bail!("its model has problems") };
    let Some(soname) = model.interpose.libraries.first() else { return Ok(None) };
    let mut chosen: Vec<Chosen> = Vec::new();
    for (i, f) in model.functions.iter().enumerate().filter(|(_, f)| plain(f)) {
        let Some(shape) = shape(&model, f, i) else { continue };
        let is_known = known.is_empty() || known.contains(&shape);
        if is_known && !chosen.iter().any(|c| c.shape == shape) {
            chosen.push(Chosen { function: f.name.clone(), shape });
        }
    }
    chosen.sort_by_key(|c| c.shape);
    if !known.is_empty() {
        chosen.truncate(MANY);
    }
    Ok(Some((soname.clone(), chosen)))
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
        let (soname, chosen) = choose("opencl", &[]).unwrap().unwrap();
        assert_eq!(soname, "libOpenCL.so.1");
        let shapes: Vec<Shape> = chosen.iter().map(|c| c.shape).collect();
        for shape in [Shape::new(1, 0), Shape::new(2, 0)] {
            assert!(shapes.contains(&shape), "{chosen:?}");
        }
    }

    #[test]
    fn others_have_the_shapes_that_are_known() {
        let known = [Shape::new(1, 0), Shape::new(1, 1)];
        let (_, chosen) = choose("hip", &known).unwrap().unwrap();
        assert_eq!(chosen.iter().map(|c| c.shape).collect::<Vec<_>>(), known, "{chosen:?}");
        assert!(choose("itt", &known).unwrap().is_none());
    }
}

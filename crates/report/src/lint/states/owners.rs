//! Objects that were made of others, and the places in these that they take.

use crate::lint::duties::{Duties, MadeNow, handles_of};
use crate::lint::facts::{Facts, Knowledge};
use crate::lint::findings::{Hit, Ref};
use crate::lint::kinds::KindId;
use crate::lint::objects::Key;
use crate::lint::passed::Passed;
use hetrace_trace::hash::QuickMap;

/// Objects that are followed at a time.
const KEPT: usize = 1 << 20;

#[derive(Debug)]
struct Child {
    parents: Vec<Key>,
    made: Ref,
    slot: Option<(Key, u64)>,
    root: bool,
}

/// All that was made of something that must outlive it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    children: QuickMap<Key, Child>,
    /// By owner.
    owned: QuickMap<Key, Vec<Key>>,
    slots: QuickMap<(Key, u64), Key>,
    /// How many places an owner has, and where it was made.
    room: QuickMap<Key, (u64, Ref)>,
}

impl Owners {
    /// What an object was made of, of this kind.
    pub fn parent(&self, child: Key, kind: KindId) -> Option<(u64, Ref)> {
        let child = self.children.get(&child)?;
        let parent = child.parents.iter().find(|(_, of, _)| *of == kind)?;
        Some((parent.2, child.made))
    }

    /// An owner is about to end.
    pub fn ends(&self, passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Option<Hit> {
        let (_, kind, handle) = *passed.handles.first()?;
        let owned = self.owned.get(&(passed.call.pid, kind, handle))?;
        let (_, child) = owned.first().and_then(|key| Some((key, self.children.get(key)?)))?;
        let name = |kind: KindId| knowledge.kind(kind).map_or("object", |kind| &kind.name);
        let what = format!(
            "{} ends a {} before the {} that was made of it ({} still there)",
            facts.function.name,
            name(kind),
            name(owned.first()?.1),
            owned.len(),
        );
        let about = format!("{} {}", facts.function.name, name(owned.first()?.1));
        let hit = Hit::new("outlives-owner", about, what, ("ends", passed.call));
        (child.root && passed.root).then(|| hit.with(Some(("made", child.made))))
    }

    /// A call has made an object.
    pub fn made(
        &mut self,
        passed: &Passed,
        duties: &Duties<'_>,
        now: &MadeNow,
        (kind, handle): (KindId, u64),
        (facts, knowledge): (&Facts<'_>, &Knowledge<'_>),
    ) -> Option<Hit> {
        let pid = passed.call.pid;
        let key = (pid, kind, handle);
        self.gone(key);
        if let Some(slots) = now.slots {
            self.room.insert(key, (slots, passed.call));
        }
        if duties.parents.is_empty() || self.children.len() >= KEPT {
            return None;
        }
        let parents = duties.parents.iter().flat_map(|at| handles_of(&passed.handles, *at));
        let parents: Vec<Key> = parents.map(|(kind, handle)| (pid, kind, handle)).collect();
        for parent in &parents {
            self.owned.entry(*parent).or_default().push(key);
        }
        let place = now.slot.and_then(|slot| Some((*parents.first()?, slot)));
        let hit = place.and_then(|place| self.takes(passed, place, key, (facts, knowledge)));
        self.children.insert(key, Child { parents, made: passed.call, slot: place, root: passed.root });
        hit
    }

    /// A place is taken: perhaps one that is in use, or that is not there.
    fn takes(
        &mut self,
        passed: &Passed,
        place: (Key, u64),
        key: Key,
        (facts, knowledge): (&Facts<'_>, &Knowledge<'_>),
    ) -> Option<Hit> {
        let before = self.slots.insert(place, key).and_then(|before| self.children.get(&before));
        let (name, slot) = (&facts.function.name, place.1);
        let of = knowledge.kind(place.0.1).map_or("object", |kind| &kind.name);
        if let Some((room, made)) = self.room.get(&place.0).filter(|(room, _)| slot >= *room) {
            let what = format!("{name} takes place {slot} of a {of} with {room}");
            let hit = Hit::new("slot-in-use", format!("{name} beyond"), what, ("call", passed.call));
            return passed.root.then(|| hit.with(Some(("made", *made))));
        }
        let before = before.filter(|before| before.root && passed.root)?;
        let what = format!("{name} takes place {slot} of a {of} that another object still has");
        let hit = Hit::new("slot-in-use", name, what, ("call", passed.call));
        Some(hit.with(Some(("has it", before.made))))
    }

    /// An object has ended.
    pub fn gone(&mut self, key: Key) {
        self.owned.remove(&key);
        self.room.remove(&key);
        let Some(child) = self.children.remove(&key) else { return };
        for parent in &child.parents {
            if let Some(owned) = self.owned.get_mut(parent) {
                owned.retain(|one| *one != key);
            }
        }
        if let Some(place) = child.slot.filter(|place| self.slots.get(place) == Some(&key)) {
            self.slots.remove(&place);
        }
    }
}

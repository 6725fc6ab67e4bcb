//! Types of many versions as one list.
//!
//! The newest layout of a type keeps its name. An older one that can be read
//! with it (a shorter struct, a reserved member that got a use) is part of it;
//! one that cannot gets a name with the last version that has it.

use std::collections::{HashMap, HashSet};

use hetrace_model::{Kind, Member, Type};

use super::snapshot::{Named, Snapshot};

/// The layouts that the versions give to each name.
pub struct Layouts<'a> {
    versions: &'a [Snapshot],
    index: Vec<HashMap<&'a str, &'a Named>>,
    groups: HashMap<String, Vec<Group>>,
    open: HashSet<String>,
}

/// Versions in which one layout can be used, newest first.
struct Group {
    name: String,
    versions: Vec<usize>,
}

impl<'a> Layouts<'a> {
    /// Versions come oldest first.
    pub fn new(versions: &'a [Snapshot]) -> Self {
        let index = |s: &'a Snapshot| s.types.iter().map(|t| (t.ty.name.as_str(), t)).collect();
        let index = versions.iter().map(index).collect();
        Layouts { versions, index, groups: HashMap::new(), open: HashSet::new() }
    }

    /// A version's type.
    pub fn named(&self, version: usize, name: &str) -> Option<&'a Named> {
        self.index[version].get(name).copied()
    }

    /// The name that a version's type has in the result.
    pub fn name(&mut self, version: usize, name: &str) -> String {
        self.compare(name);
        self.known_name(version, name).to_owned()
    }

    fn known_name<'n>(&'n self, version: usize, name: &'n str) -> &'n str {
        let groups = self.groups.get(name).map(Vec::as_slice).unwrap_or_default();
        let group = groups.iter().find(|g| g.versions.contains(&version));
        group.map_or(name, |g| &g.name)
    }

    /// All types: the newest version's order, then what only older ones have.
    pub fn finish(mut self) -> Vec<Named> {
        let mut seen = HashSet::new();
        let all = self.versions.iter().rev().flat_map(|s| s.types.iter().map(|t| t.ty.name.as_str()));
        let names: Vec<&str> = all.filter(|n| seen.insert(*n)).collect();
        names.iter().for_each(|n| self.compare(n));
        let mut types = Vec::new();
        for name in names {
            for group in self.groups.get(name).map(Vec::as_slice).unwrap_or_default() {
                types.push(self.merged(group, name));
            }
        }
        types
    }

    fn label(&self, version: usize) -> &'a str {
        &self.versions[version].label
    }

    fn compare(&mut self, name: &str) {
        if self.groups.contains_key(name) || !self.open.insert(name.to_owned()) {
            return; // Known, or reached again through a pointer of its own.
        }
        let mut groups: Vec<Group> = Vec::new();
        for version in (0..self.versions.len()).rev() {
            let Some(old) = self.named(version, name) else { continue };
            let fits = match groups.last() {
                Some(group) => {
                    let head = group.versions[0];
                    self.named(head, name).is_some_and(|h| self.readable((head, &h.ty), (version, &old.ty)))
                }
                None => false,
            };
            match groups.last_mut().filter(|_| fits) {
                Some(group) => group.versions.push(version),
                None => {
                    let suffix =
                        if groups.is_empty() { String::new() } else { format!("@{}", self.label(version)) };
                    groups.push(Group { name: format!("{name}{suffix}"), versions: vec![version] });
                }
            }
        }
        self.open.remove(name);
        self.groups.insert(name.to_owned(), groups);
    }

    /// Whether what an older version writes can be read as the newer type.
    fn readable(&mut self, new: (usize, &Type), old: (usize, &Type)) -> bool {
        let record = |t: &Type| matches!(t.kind, Kind::Struct | Kind::Union);
        if old.1.size == 0 {
            return true; // Not defined there; programs could only point at it.
        }
        if !record(new.1) || !record(old.1) {
            return record(new.1) == record(old.1) && new.1.size == old.1.size;
        }
        self.extent(old) <= new.1.size
            && new.1.kind == old.1.kind
            && old.1.members.iter().all(|m| filler(m) || self.has((new.0, new.1), (old.0, m)))
    }

    /// The end of the last member that is not there to fill.
    fn extent(&self, (version, ty): (usize, &Type)) -> u32 {
        let used = ty.members.iter().filter(|m| !filler(m));
        let end = |m: &Member| match m.pointers {
            0 => m.offset + m.count * self.named(version, &m.ty).map_or(0, |n| n.ty.size),
            _ => m.offset + m.count * 8,
        };
        used.map(end).max().unwrap_or(0)
    }

    fn has(&mut self, new: (usize, &Type), old: (usize, &Member)) -> bool {
        let by_name = new.1.members.iter().find(|m| m.name == old.1.name);
        if let Some(member) = by_name {
            return member.offset == old.1.offset && self.same((new.0, member), old);
        }
        let mut others = new.1.members.iter().filter(|m| m.offset == old.1.offset);
        others.any(|m| self.same((new.0, m), old))
    }

    fn same(&mut self, new: (usize, &Member), old: (usize, &Member)) -> bool {
        if new.1.count < old.1.count {
            return false;
        }
        let size = |layouts: &Self, (version, member): (usize, &Member)| match member.pointers {
            0 => layouts.named(version, &member.ty).map_or(0, |n| n.ty.size),
            _ => 8,
        };
        let (wide, narrow) = (size(self, new), size(self, old));
        // What was put into a union is still there.
        let union = self.named(new.0, &new.1.ty).is_some_and(|n| n.ty.kind == Kind::Union);
        if new.1.pointers != old.1.pointers {
            return (union || (self.is_handle(new) && self.is_handle(old))) && wide == narrow;
        }
        if new.1.ty != old.1.ty {
            return wide == narrow;
        }
        (wide == narrow || new.1.count == 1) && self.name(new.0, &new.1.ty) == self.name(old.0, &old.1.ty)
    }

    /// A handle may be written as a pointer to what nobody looks into.
    fn is_handle(&self, (version, member): (usize, &Member)) -> bool {
        let kind = self.named(version, &member.ty).map(|n| n.ty.kind);
        match member.pointers {
            0 => kind == Some(Kind::Handle),
            1 => kind == Some(Kind::Opaque) && member.ty != "void",
            _ => false,
        }
    }

    /// The newest type of a group with what the older ones add.
    fn merged(&self, group: &Group, name: &str) -> Named {
        let head = group.versions[0];
        let Some(newest) = self.named(head, name) else { return Named::default() };
        let mut out = newest.clone();
        if group.name != name {
            out.canonical = format!("{}@{}", out.canonical, self.label(head));
            out.ty.name.clone_from(&group.name);
        }
        let mut size = out.ty.size;
        for pair in group.versions.windows(2) {
            let old = self.named(pair[1], name).map_or(0, |n| n.ty.size);
            if old < size && old > 0 {
                out.ty.size_before.push((self.label(pair[0]).to_owned(), old));
                size = old;
            }
        }
        for member in &mut out.ty.members {
            if !filler(member) {
                member.since = self.since(group, name, member);
            }
            member.ty = self.known_name(head, &member.ty).to_owned();
        }
        out
    }

    /// The version that brought a member, unless the group's oldest has it.
    fn since(&self, group: &Group, name: &str, member: &Member) -> String {
        let defined = |v: &&usize| self.named(**v, name).is_some_and(|n| n.ty.size > 0);
        let has = |v: &&usize| {
            let members = self.named(**v, name).map(|n| n.ty.members.as_slice()).unwrap_or_default();
            let same = |m: &Member| {
                m.name == member.name
                    || (m.offset == member.offset
                        && m.ty == member.ty
                        && m.count == member.count
                        && !filler(m))
            };
            members.iter().any(same)
        };
        let oldest = group.versions.iter().rfind(defined);
        match group.versions.iter().take_while(has).last() {
            Some(first) if Some(first) != oldest => self.label(*first).to_owned(),
            _ => String::new(),
        }
    }
}

/// Room kept for later versions.
fn filler(member: &Member) -> bool {
    let lower = member.name.to_ascii_lowercase();
    ["reserved", "pad", "oversize"].iter().any(|word| lower.contains(word))
}

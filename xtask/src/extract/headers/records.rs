//! Types of a parsed header, with the names that the model gives them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use clang::{Entity, EntityKind, Type as CType, TypeKind};
use hetrace_model::{EnumGroup, Kind, Member, Type};

use super::super::description::Headers;
use super::entity::{enumerator, is_own};
use super::snapshot::Named;
use super::{ctype, values};

/// The types of one translation unit, in the order in which they came.
pub struct Records<'a, 'tu> {
    api: &'a Headers,
    root: &'a Path,
    /// The names that typedefs give to structs, unions and enumerations.
    typedefs: HashMap<Entity<'tu>, Vec<String>>,
    known: HashSet<String>,
    types: Vec<Named>,
    enums: Vec<EnumGroup>,
    notes: Vec<String>,
}

impl<'a, 'tu> Records<'a, 'tu> {
    /// Notes the names first: a struct's own may come after its members.
    pub fn new(api: &'a Headers, root: &'a Path, top: &[Entity<'tu>]) -> Self {
        let mut typedefs: HashMap<_, Vec<_>> = HashMap::new();
        for entity in top.iter().filter(|e| e.get_kind() == EntityKind::TypedefDecl) {
            let of = entity.get_typedef_underlying_type().map(|t| t.get_canonical_type());
            let of = of.filter(|t| matches!(t.get_kind(), TypeKind::Record | TypeKind::Enum));
            if let (Some(of), Some(name)) = (of.and_then(|t| t.get_declaration()), entity.get_name()) {
                typedefs.entry(of).or_default().push(name);
            }
        }
        let (known, types, enums, notes) = Default::default();
        Records { api, root, typedefs, known, types, enums, notes }
    }

    /// Types, groups of values and remarks.
    pub fn finish(self) -> (Vec<Named>, Vec<EnumGroup>, Vec<String>) {
        (self.types, self.enums, self.notes)
    }

    /// A declaration of a header; what other headers declare waits for its use.
    pub fn top(&mut self, entity: Entity<'tu>) {
        if is_own(entity, self.root)
            && let Some(ty) = entity.get_type()
        {
            self.used(ty);
        }
    }

    /// A type that a prototype uses; its name without pointers.
    pub fn used(&mut self, ty: CType<'tu>) {
        self.named(ty, "");
    }

    /// Name, pointers and count of a member's type; `place` names what has none.
    fn named(&mut self, ty: CType<'tu>, place: &str) -> (String, u8, u32) {
        let parts = ctype::parts(ty);
        if parts.function {
            self.builtin("void", Kind::Opaque, 0);
            return ("void".to_owned(), parts.pointers, parts.count);
        }
        let name = self.define(parts.base, place);
        (name, parts.pointers, parts.count)
    }

    fn builtin(&mut self, name: &str, kind: Kind, size: u32) {
        if self.known.insert(name.to_owned()) {
            let ty = Type { name: name.to_owned(), kind, size, ..Type::default() };
            self.types.push(Named { canonical: name.to_owned(), ty, own: false });
        }
    }

    /// Makes sure that a type without pointers is known; its name.
    fn define(&mut self, base: CType<'tu>, place: &str) -> String {
        let canonical = base.get_canonical_type();
        let declaration = base.get_declaration();
        let name = match base.get_kind() {
            TypeKind::Typedef => declaration.and_then(|d| d.get_name()),
            TypeKind::Record | TypeKind::Enum => declaration.and_then(tag),
            _ => Some(ctype::plain(&base.get_display_name()).trim_start_matches("const ").to_owned()),
        };
        let shared = canonical.get_declaration().map(|d| self.shared(d, place));
        // `struct _toy_t` is `toy_t`, and not another type beside it.
        let name = name.filter(|name| !shared.as_ref().is_some_and(|shared| is_underscored(name, shared)));
        let Some(name) = name.or_else(|| shared.clone()).filter(|n| !n.is_empty()) else {
            return "void".to_owned();
        };
        if !self.known.insert(name.clone()) {
            return name;
        }
        let size = canonical.get_sizeof().ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let mut ty = Type { name: name.clone(), size, ..Type::default() };
        match canonical.get_kind() {
            TypeKind::Record if self.api.is_opaque(&name) => ty.size = 0,
            TypeKind::Record => self.record(&mut ty, canonical, shared.as_deref().unwrap_or(&name)),
            TypeKind::Enum => self.enumeration(&mut ty, canonical, shared.as_deref().unwrap_or(&name)),
            // Clang says 1 as GNU C does; what a function is made of is no value.
            TypeKind::FunctionPrototype => ty.size = 0,
            kind => ty.kind = plain_kind(kind, canonical),
        }
        if ty.kind == Kind::Opaque && ty.size > 0 {
            self.notes.push(format!("`{name}` is taken as opaque"));
        }
        ty.hex = self.api.addresses.contains(&name);
        let own = declaration.is_some_and(|d| is_own(d, self.root));
        let canonical = shared.unwrap_or_else(|| name.clone());
        self.types.push(Named { ty, canonical, own });
        name
    }

    /// The one name of a struct or enumeration with several: its tag, unless
    /// that only serves to make the typedef. Versions of libclang differ in
    /// whether a typedef counts as the tag of what has none.
    fn shared(&self, declaration: Entity<'tu>, place: &str) -> String {
        let typedefs = self.typedefs.get(&declaration).map(Vec::as_slice).unwrap_or_default();
        let shortest = typedefs.iter().min_by_key(|n| n.len());
        match (tag(declaration), shortest) {
            (Some(tag), Some(typedef))
                if serves_typedef(&tag) || is_underscored(&tag, typedef) || typedefs.contains(&tag) =>
            {
                typedef.clone()
            }
            (Some(tag), _) => tag,
            (None, Some(typedef)) => typedef.clone(),
            (None, None) => place.to_owned(),
        }
    }

    fn record(&mut self, ty: &mut Type, canonical: CType<'tu>, shared: &str) {
        let Some(fields) = canonical.get_fields().filter(|_| ty.size > 0) else { return };
        let union = canonical.get_declaration().is_some_and(|d| d.get_kind() == EntityKind::UnionDecl);
        ty.kind = if union { Kind::Union } else { Kind::Struct };
        let mut nameless = 0;
        for field in fields {
            let Some(field_type) = field.get_type() else { continue };
            if field.is_bit_field() {
                self.notes.push(format!("`{shared}`: bit fields are left out"));
                continue;
            }
            let name = field.get_name().filter(|n| !n.is_empty() && !n.contains('(')).unwrap_or_else(|| {
                nameless += 1;
                format!("_{}", nameless - 1)
            });
            let bits = field.get_offset_of_field().unwrap_or(0);
            let (of, pointers, count) = self.named(field_type, &format!("{shared}.{name}"));
            let offset = u32::try_from(bits / 8).unwrap_or(u32::MAX);
            ty.members.push(Member { name, ty: of, pointers, offset, count, since: String::new() });
        }
    }

    fn enumeration(&mut self, ty: &mut Type, canonical: CType<'tu>, shared: &str) {
        let Some(declaration) = canonical.get_declaration() else { return };
        let under = declaration.get_enum_underlying_type();
        let signed = under.is_some_and(|t| t.get_canonical_type().is_signed_integer());
        ty.kind = if signed { Kind::Int } else { Kind::Uint };
        let constants = declaration.get_children().into_iter();
        let constants = constants.filter(|e| e.get_kind() == EntityKind::EnumConstantDecl);
        let values: Vec<_> = constants.filter_map(|e| enumerator(e, signed).ok()).collect();
        if values.is_empty() {
            return;
        }
        ty.values = Some(shared.to_owned());
        if !self.enums.iter().any(|g| g.name == shared) {
            let bits = values::are_bits(self.api, shared, &values);
            self.enums.push(EnumGroup { name: shared.to_owned(), bits, values });
        }
    }
}

/// A struct's own name.
fn tag(declaration: Entity<'_>) -> Option<String> {
    // Newer versions of libclang put `(unnamed ...)` in place of no name.
    declaration.get_name().filter(|n| !n.contains('(') && !n.is_empty())
}

/// Whether a tag is a typedef's name with an underscore before it.
fn is_underscored(tag: &str, typedef: &str) -> bool {
    tag.strip_prefix('_') == Some(typedef)
}

fn serves_typedef(tag: &str) -> bool {
    let versioned = tag.rsplit_once("_v").is_some_and(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    versioned || ["_st", "_enum", "_union"].iter().any(|end| tag.ends_with(end))
}

fn plain_kind(kind: TypeKind, canonical: CType<'_>) -> Kind {
    match kind {
        TypeKind::Pointer => {
            let function = canonical.get_pointee_type().map(|t| t.get_kind());
            let function = matches!(
                function,
                Some(TypeKind::FunctionPrototype | TypeKind::FunctionNoPrototype | TypeKind::Unexposed)
            );
            if function { Kind::Callback } else { Kind::Handle }
        }
        TypeKind::Float | TypeKind::Double => Kind::Float,
        _ if canonical.is_signed_integer() => Kind::Int,
        _ if canonical.is_unsigned_integer() || kind == TypeKind::Bool => Kind::Uint,
        _ => Kind::Opaque,
    }
}

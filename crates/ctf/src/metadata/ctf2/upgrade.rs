//! A CTF 1.8 trace in the terms of CTF 2: roles and locations instead of names.

use crate::class::resolve::{ELEMENT, Place, ranges, resolve};
use crate::class::scopes::Scopes;
use crate::class::{
    BlobClass, BlobLength, Encoding, FieldClass, FieldPath, Identity, IntegerClass, OptionRange, PlanError,
    Role, Roles, Scope, StringClass, StructClass, TraceClass, clock_of,
};

/// Describes the same bytes by the rules of CTF 2. What CTF 2 cannot say is left
/// out: clocks that are not the one of their stream, and ASCII, which is UTF-8.
///
/// # Errors
///
/// A length or tag that is not there, or a tag that is no enumeration.
pub fn upgrade(trace: &TraceClass) -> Result<TraceClass, PlanError> {
    let mut new = trace.clone();
    if trace.major >= 2 {
        return Ok(new);
    }
    (new.major, new.minor) = (2, 0);
    for clock in &mut new.clocks {
        let uid = clock.uuid.map(hyphenated);
        clock.more.identity = Identity { uid, ..Identity::default() };
    }
    let scopes = Scopes { trace, stream: None, event: None };
    new.packet_header = Upgrade { scopes, clock: None }.scope(Scope::PacketHeader)?;
    for (stream, new) in trace.streams.iter().zip(&mut new.streams) {
        let scopes = Scopes { trace, stream: Some(stream), event: None };
        let mut up = Upgrade { scopes, clock: clock_of(stream) };
        new.clock = up.clock.map(str::to_owned);
        new.packet_context = up.scope(Scope::PacketContext)?;
        new.event_header = up.scope(Scope::EventHeader)?;
        new.event_context = up.scope(Scope::StreamEventContext)?;
        for (event, new) in stream.events.iter().zip(&mut new.events) {
            up.scopes.event = Some(event);
            new.context = up.scope(Scope::EventContext)?;
            new.fields = up.scope(Scope::EventFields)?.unwrap_or_default();
        }
    }
    Ok(new)
}

fn hyphenated(uuid: [u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

struct Upgrade<'c> {
    scopes: Scopes<'c>,
    clock: Option<&'c str>,
}

impl<'c> Upgrade<'c> {
    fn scope(&self, scope: Scope) -> Result<Option<StructClass>, PlanError> {
        let Some(class) = self.scopes.get(scope) else {
            return Ok(None);
        };
        self.structure(class, &mut Place { scope, indexes: Vec::new() }).map(Some)
    }

    fn structure(&self, class: &StructClass, at: &mut Place) -> Result<StructClass, PlanError> {
        let mut new = class.clone();
        for (index, field) in new.fields.iter_mut().enumerate() {
            self.inner(index as u32, &field.name, &mut field.class, at)?;
        }
        Ok(new)
    }

    fn inner(&self, index: u32, name: &str, class: &mut FieldClass, at: &mut Place) -> Result<(), PlanError> {
        at.indexes.push(index);
        let result = self.class(name, class, at);
        at.indexes.pop();
        result
    }

    fn class(&self, name: &str, class: &mut FieldClass, at: &mut Place) -> Result<(), PlanError> {
        let is_uuid = at.scope == Scope::PacketHeader && at.indexes.len() == 1 && name == "uuid";
        match class {
            FieldClass::Integer(c) => self.integer(name, c, at),
            FieldClass::Enum(c) => self.integer(name, &mut c.container, at),
            FieldClass::String(c) => *c = StringClass { encoding: Encoding::Utf8 },
            FieldClass::Struct(c) => *c = self.structure(c, at)?,
            FieldClass::Array(c) if is_uuid && c.len == 16 && is_byte(&c.element) => {
                let roles = Roles::default().with(Role::MetadataStreamUuid);
                *class = BlobClass { roles, ..BlobClass::new(BlobLength::Static(16)) }.into();
            }
            FieldClass::Array(c) => self.element(&mut c.element, at)?,
            FieldClass::Sequence(c) => {
                c.length = self.location(&c.length, at)?;
                self.element(&mut c.element, at)?;
            }
            FieldClass::Variant(c) => {
                let target = resolve(&self.scopes, at, &c.tag).into_iter().next();
                let Some((_, FieldClass::Enum(tag))) = target else {
                    return Err(self.unresolved(&c.tag, at));
                };
                let by_label = ranges(tag, c).into_iter();
                c.ranges =
                    Some(by_label.map(|(start, end, option)| OptionRange { start, end, option }).collect());
                c.tag = self.location(&c.tag, at)?;
                for (index, option) in c.options.iter_mut().enumerate() {
                    self.inner(index as u32, &option.name, &mut option.class, at)?;
                }
            }
            FieldClass::Float(_) | FieldClass::Optional(_) | FieldClass::Blob(_) => {}
        }
        Ok(())
    }

    fn element(&self, class: &mut FieldClass, at: &mut Place) -> Result<(), PlanError> {
        if class.is_character() {
            *class = IntegerClass::character().into();
            return Ok(());
        }
        self.inner(ELEMENT, "", class, at)
    }

    fn integer(&self, name: &str, class: &mut IntegerClass, at: &Place) {
        class.encoding = Encoding::None;
        class.clock = class.clock.take().filter(|clock| Some(clock.as_str()) == self.clock);
        if class.signed {
            return;
        }
        let outermost = at.indexes.len() == 1;
        let role = match (at.scope, name) {
            (Scope::PacketHeader, "magic") if outermost => Role::PacketMagicNumber,
            (Scope::PacketHeader, "stream_id") if outermost => Role::DataStreamClassId,
            (Scope::PacketHeader, "stream_instance_id") if outermost => Role::DataStreamId,
            (Scope::PacketContext, "content_size") if outermost => Role::PacketContentLength,
            (Scope::PacketContext, "packet_size") if outermost => Role::PacketTotalLength,
            (Scope::PacketContext, "packet_seq_num") if outermost => Role::PacketSequenceNumber,
            (Scope::PacketContext, "events_discarded") if outermost => {
                Role::DiscardedEventRecordCounterSnapshot
            }
            (Scope::PacketContext, "timestamp_end") if class.clock.is_some() => {
                Role::PacketEndDefaultClockTimestamp
            }
            (Scope::PacketContext | Scope::EventHeader, _) if class.clock.is_some() => {
                Role::DefaultClockTimestamp
            }
            (Scope::EventHeader, "id") => Role::EventRecordClassId,
            _ => return,
        };
        class.roles = class.roles.with(role);
    }

    /// Returns a reference as names from its scope on.
    fn location(&self, path: &FieldPath, at: &Place) -> Result<FieldPath, PlanError> {
        let target = resolve(&self.scopes, at, path).into_iter().next();
        let (place, _) = target.ok_or_else(|| self.unresolved(path, at))?;
        let (mut names, mut inner): (_, Option<&FieldClass>) = (Vec::new(), None);
        for &index in &place.indexes {
            let fields = match inner {
                None => self.scopes.get(place.scope).map_or(&[][..], |c| &c.fields),
                Some(FieldClass::Struct(c)) => &c.fields,
                Some(FieldClass::Variant(c)) => {
                    inner = c.options.get(index as usize).map(|o| &o.class);
                    continue;
                }
                Some(FieldClass::Array(c)) => {
                    inner = Some(&*c.element);
                    continue;
                }
                Some(FieldClass::Sequence(c)) => {
                    inner = Some(&*c.element);
                    continue;
                }
                Some(_) => &[],
            };
            let field = fields.get(index as usize).ok_or_else(|| self.unresolved(path, at))?;
            names.push(field.name.clone());
            inner = Some(&field.class);
        }
        Ok(FieldPath { scope: Some(place.scope), names, parents: Some(0) })
    }

    fn unresolved(&self, path: &FieldPath, at: &Place) -> PlanError {
        PlanError::Unresolved { place: self.scopes.place(at.scope), reference: path.to_string() }
    }
}

fn is_byte(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(c) if c.size == 8 && c.align == 8)
}

//! Fragments to a [`TraceClass`].

use std::collections::{HashMap, HashSet};

use super::json::{self, Json};
use super::lower_field::{Aliases, Result, bad, need, text, unsigned};
use super::properties::{self, Part};
use super::{JsonError, JsonErrorKind as Kind, SEPARATOR};
use crate::class::{
    ByteOrder, ClockClass, ClockDetails, EnvValue, EventClass, FieldClass, Identity, Role, StreamClass,
    StructClass, TraceClass,
};
use crate::metadata::budget;

/// What is known so far.
struct Lower {
    trace: TraceClass,
    aliases: Aliases,
    /// Names of clocks by their ids.
    clocks: HashMap<String, String>,
    /// Positions of stream classes by their ids.
    streams: HashMap<u64, usize>,
    /// Ids of streams and of their events.
    events: HashSet<(u64, u64)>,
    has_trace_class: bool,
}

/// Makes the classes of all fragments of a text.
pub(super) fn trace(text: &str) -> std::result::Result<TraceClass, JsonError> {
    let mut trace = TraceClass::new(ByteOrder::Little);
    (trace.major, trace.minor) = (2, 0);
    let mut lower = Lower {
        trace,
        aliases: Aliases::new(budget(text.len())),
        clocks: HashMap::new(),
        streams: HashMap::new(),
        events: HashSet::new(),
        has_trace_class: false,
    };
    let fragments = text.split(char::from(SEPARATOR)).map(|f| f.trim_end_matches('\0'));
    let mut count = 0;
    for (number, fragment) in (1..).zip(fragments.filter(|f| !f.trim().is_empty())) {
        let result = json::parse(fragment).and_then(|json| lower.fragment(&json, number == 1));
        result.map_err(|kind| JsonError { fragment: number, kind })?;
        count = number;
    }
    if count == 0 {
        return Err(JsonError { fragment: 1, kind: Kind::Preamble });
    }
    Ok(lower.trace)
}

fn identity(json: &Json) -> Result<Identity> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(Identity {
        namespace: owned(text(json, "namespace")?),
        name: owned(text(json, "name")?),
        uid: owned(text(json, "uid")?),
    })
}

/// The members of a property that is an object; none where it is absent.
fn members<'j>(json: &'j Json, name: &'static str) -> Result<&'j [(String, Json)]> {
    match json.get(name) {
        None => Ok(&[]),
        Some(Json::Object(members)) => Ok(members),
        Some(other) => Err(bad(name, other)),
    }
}

impl Lower {
    fn fragment(&mut self, json: &Json, first: bool) -> Result<()> {
        let kind = text(json, "type")?.ok_or(Kind::Missing("type"))?;
        if first != (kind == "preamble") {
            return Err(Kind::Preamble);
        }
        properties::check(json, kind)?;
        members(json, "attributes")?;
        match kind {
            "preamble" => self.preamble(json),
            "field-class-alias" => {
                let name = text(json, "name")?.ok_or(Kind::Missing("name"))?;
                self.aliases.define(name, need(json, "field-class")?)
            }
            "trace-class" => self.trace_class(json),
            "clock-class" => self.clock_class(json),
            "data-stream-class" => self.stream_class(json),
            "event-record-class" => self.event_class(json),
            _ => Err(bad("type", need(json, "type")?)),
        }
    }

    fn preamble(&mut self, json: &Json) -> Result<()> {
        if json.get("version") != Some(&Json::Int(2)) {
            return Err(Kind::Preamble);
        }
        // {"namespace": {"extension": …}}
        for (namespace, extensions) in members(json, "extensions")? {
            let Json::Object(extensions) = extensions else { return Err(bad("extensions", extensions)) };
            if let Some((name, _)) = extensions.first() {
                return Err(Kind::Extension(format!("{namespace}:{name}")));
            }
        }
        if let Some(json) = json.get("uuid") {
            self.trace.uuid = Some(uuid(json).ok_or_else(|| bad("uuid", json))?);
        }
        Ok(())
    }

    fn trace_class(&mut self, json: &Json) -> Result<()> {
        if std::mem::replace(&mut self.has_trace_class, true) {
            return Err(Kind::Redefined { what: "trace class", name: String::new() });
        }
        self.trace.identity = identity(json)?;
        for (name, value) in members(json, "environment")? {
            let value = match value {
                Json::Str(text) => EnvValue::Str(text.clone()),
                Json::Int(value) if let Ok(value) = i64::try_from(*value) => EnvValue::Int(value),
                other => return Err(bad("environment", other)),
            };
            self.trace.env.push((name.clone(), value));
        }
        self.trace.packet_header = self.aliases.scope(json, "packet-header-field-class")?;
        Ok(())
    }

    fn clock_class(&mut self, json: &Json) -> Result<()> {
        let identity = identity(json)?;
        let id = text(json, "id")?.or(identity.name.as_deref()).ok_or(Kind::Missing("id"))?.to_owned();
        // Fields refer to a clock by its name, which has to be its own.
        let name = identity.name.clone().filter(|name| self.trace.clock(name).is_none());
        let name = name.unwrap_or_else(|| id.clone());
        if self.trace.clock(&name).is_some() || self.clocks.insert(id.clone(), name.clone()).is_some() {
            return Err(Kind::Redefined { what: "clock class", name: id });
        }
        let frequency = unsigned(json, "frequency")?.ok_or(Kind::Missing("frequency"))?;
        if frequency == 0 {
            return Err(bad("frequency", &Json::Int(0)));
        }
        let mut clock = ClockClass::new(&name, frequency);
        clock.precision = unsigned(json, "precision")?;
        clock.description = text(json, "description")?.map(str::to_owned);
        members(json, "offset-from-origin")?;
        if let Some(offset) = json.get("offset-from-origin") {
            properties::check_part(offset, Part::Offset)?;
            clock.offset = unsigned(offset, "cycles")?.unwrap_or(0);
            clock.offset_seconds = match offset.get("seconds") {
                None => 0,
                Some(Json::Int(seconds)) if let Ok(seconds) = i64::try_from(*seconds) => seconds,
                Some(other) => return Err(bad("seconds", other)),
            };
        }
        let origin = match json.get("origin") {
            None => None,
            Some(Json::Str(origin)) if origin == "unix-epoch" => {
                clock.absolute = true;
                None
            }
            Some(origin @ Json::Object(_)) => {
                properties::check_part(origin, Part::Origin)?;
                need(origin, "name")?;
                need(origin, "uid")?;
                Some(self::identity(origin)?)
            }
            Some(other) => return Err(bad("origin", other)),
        };
        clock.uuid = identity.uid.as_deref().and_then(text_uuid);
        clock.more = ClockDetails {
            id: Some(id).filter(|id| *id != name),
            identity: Identity { name: None, ..identity },
            accuracy: unsigned(json, "accuracy")?,
            origin,
        };
        self.trace.clocks.push(clock);
        Ok(())
    }

    fn stream_class(&mut self, json: &Json) -> Result<()> {
        let id = unsigned(json, "id")?.unwrap_or(0);
        if self.streams.insert(id, self.trace.streams.len()).is_some() {
            return Err(Kind::Redefined { what: "data stream class", name: id.to_string() });
        }
        let clock = match text(json, "default-clock-class-id")? {
            Some(clock) => {
                let unknown = || Kind::Unknown { what: "clock class", name: clock.into() };
                Some(self.clocks.get(clock).cloned().ok_or_else(unknown)?)
            }
            None => None,
        };
        let mut stream = StreamClass {
            id,
            identity: identity(json)?,
            clock,
            packet_context: self.aliases.scope(json, "packet-context-field-class")?,
            event_header: self.aliases.scope(json, "event-record-header-field-class")?,
            event_context: self.aliases.scope(json, "event-record-common-context-field-class")?,
            ..StreamClass::default()
        };
        if let Some(clock) = &stream.clock {
            for class in [&mut stream.packet_context, &mut stream.event_header].into_iter().flatten() {
                class.fields.iter_mut().for_each(|field| map_times(&mut field.class, clock));
            }
        }
        self.trace.streams.push(stream);
        Ok(())
    }

    fn event_class(&mut self, json: &Json) -> Result<()> {
        let id = unsigned(json, "id")?.unwrap_or(0);
        let stream = unsigned(json, "data-stream-class-id")?.unwrap_or(0);
        let Some(&index) = self.streams.get(&stream) else {
            return Err(Kind::Unknown { what: "data stream class", name: stream.to_string() });
        };
        if !self.events.insert((stream, id)) {
            return Err(Kind::Redefined { what: "event record class", name: id.to_string() });
        }
        let identity = identity(json)?;
        let mut event = EventClass {
            id,
            name: identity.name.clone().unwrap_or_default(),
            context: self.aliases.scope(json, "specific-context-field-class")?,
            fields: self.aliases.scope(json, "payload-field-class")?.unwrap_or_default(),
            ..EventClass::default()
        };
        // What other tracers' attributes mean is not part of CTF, but these say
        // what CTF 1.8 has places for.
        for namespace in ["lttng.org,2009", "babeltrace.org,2020"] {
            let attributes = json.get("attributes").and_then(|a| a.get(namespace));
            if let Some(Json::Int(level)) = attributes.and_then(|a| a.get("log-level")) {
                event.log_level = i64::try_from(*level).ok();
            }
            for name in ["emf-uri", "emf_uri"] {
                if let Some(Json::Str(uri)) = attributes.and_then(|a| a.get(name)) {
                    event.emf_uri = Some(uri.clone());
                }
            }
        }
        let identity = Identity { name: None, ..identity };
        let stream = &mut self.trace.streams[index];
        if identity != Identity::default() {
            stream.event_identities.insert(id, identity);
        }
        stream.events.push(event);
        Ok(())
    }
}

/// Maps fields with the role of a timestamp to `clock`.
fn map_times(class: &mut FieldClass, clock: &str) {
    let map_all =
        |class: &mut StructClass| class.fields.iter_mut().for_each(|f| map_times(&mut f.class, clock));
    let integer = match class {
        FieldClass::Integer(c) => c,
        FieldClass::Enum(c) => &mut c.container,
        FieldClass::Struct(c) => return map_all(c),
        FieldClass::Variant(c) => return c.options.iter_mut().for_each(|o| map_times(&mut o.class, clock)),
        FieldClass::Array(c) => return map_times(&mut c.element, clock),
        FieldClass::Sequence(c) => return map_times(&mut c.element, clock),
        FieldClass::Optional(c) => return map_times(&mut c.class, clock),
        FieldClass::Float(_) | FieldClass::String(_) | FieldClass::Blob(_) => return,
    };
    let times = [Role::DefaultClockTimestamp, Role::PacketEndDefaultClockTimestamp];
    if times.into_iter().any(|role| integer.roles.has(role)) {
        integer.clock = Some(clock.into());
    }
}

/// Returns a UUID as 16 numbers, or as a text.
fn uuid(json: &Json) -> Option<[u8; 16]> {
    match json {
        Json::Array(items) => {
            let byte = |item: &Json| match item {
                Json::Int(value) => u8::try_from(*value).ok(),
                _ => None,
            };
            items.iter().map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
        }
        Json::Str(text) => text_uuid(text),
        _ => None,
    }
}

fn text_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&c| c != '-').collect();
    let hex = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let value = u128::from_str_radix(&digits, 16).ok().filter(|_| hex)?;
    Some(value.to_be_bytes())
}

//! References from a sequence to its length and from a variant to its tag.

/// The six places a field can be in; in the order in which they are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `trace.packet.header`
    PacketHeader,
    /// `stream.packet.context`
    PacketContext,
    /// `stream.event.header`
    EventHeader,
    /// `stream.event.context`: context common to the events of a stream.
    StreamEventContext,
    /// `event.context`: context of one kind of event.
    EventContext,
    /// `event.fields`: the payload.
    EventFields,
}

impl Scope {
    /// All scopes, in the order in which they are decoded.
    pub const ALL: [Scope; 6] = [
        Scope::PacketHeader,
        Scope::PacketContext,
        Scope::EventHeader,
        Scope::StreamEventContext,
        Scope::EventContext,
        Scope::EventFields,
    ];

    /// Returns the scope as TSDL writes it.
    pub fn tsdl(self) -> &'static str {
        match self {
            Scope::PacketHeader => "trace.packet.header",
            Scope::PacketContext => "stream.packet.context",
            Scope::EventHeader => "stream.event.header",
            Scope::StreamEventContext => "stream.event.context",
            Scope::EventContext => "event.context",
            Scope::EventFields => "event.fields",
        }
    }
}

/// Where a length or a tag is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// The scope the path starts from; none for a path relative to the
    /// enclosing structures, the innermost first.
    pub scope: Option<Scope>,
    /// Names of fields (and of variant options) to go down through. By the rules
    /// of CTF 2 options, elements and optional fields are gone through unnamed.
    pub names: Vec<String>,
    /// By the rules of CTF 2: how many structures to go up from the one around,
    /// 0 in a path with a scope. None by the rules of CTF 1.8.
    pub parents: Option<u32>,
}

impl FieldPath {
    /// Returns a field that stands before the referring one, in the same structure or
    /// in one around it.
    pub fn relative(name: impl Into<String>) -> Self {
        Self { scope: None, names: vec![name.into()], parents: None }
    }

    /// Returns a field of a scope.
    pub fn absolute<S: Into<String>>(scope: Scope, names: impl IntoIterator<Item = S>) -> Self {
        Self { scope: Some(scope), names: names.into_iter().map(Into::into).collect(), parents: None }
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(scope) = self.scope {
            write!(f, "{}.", scope.tsdl())?;
        }
        for _ in 0..self.parents.unwrap_or(0) {
            f.write_str("..")?;
        }
        f.write_str(&self.names.join("."))
    }
}

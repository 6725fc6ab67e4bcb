//! The words of CTF 2 for what classes say.

use crate::class::{Base, Encoding, Scope};

/// Returns the root of a field location.
pub(super) fn scope(name: &str) -> Option<Scope> {
    Scope::ALL.into_iter().find(|&scope| scope_name(scope) == name)
}

/// Returns how CTF 2 names a scope.
pub(super) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::StreamEventContext => "event-record-common-context",
        Scope::EventContext => "event-record-specific-context",
        Scope::EventFields => "event-record-payload",
    }
}

/// Returns what texts may be encoded in.
pub(super) fn encoding(name: &str) -> Option<Encoding> {
    [Encoding::Utf8, Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le]
        .into_iter()
        .find(|&encoding| encoding_name(encoding) == name)
}

/// Returns how CTF 2 names an encoding; ASCII is UTF-8, too.
pub(super) fn encoding_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::None | Encoding::Ascii | Encoding::Utf8 => "utf-8",
        Encoding::Utf16Be => "utf-16be",
        Encoding::Utf16Le => "utf-16le",
        Encoding::Utf32Be => "utf-32be",
        Encoding::Utf32Le => "utf-32le",
    }
}

/// Returns the number behind a base.
pub(super) fn radix(base: Base) -> u32 {
    match base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    }
}

/// Returns the base with a number.
pub(super) fn base(radix: i128) -> Option<Base> {
    [Base::Binary, Base::Octal, Base::Decimal, Base::Hexadecimal]
        .into_iter()
        .find(|&base| i128::from(self::radix(base)) == radix)
}

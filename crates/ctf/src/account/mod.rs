//! What was written into a trace, by whoever wrote it, so that a reader can say what is missing.
//!
//! ```text
//!  writer:  packet ──► Counter ──► StreamAccount ┐
//!           file   ──► FileAccount ──────────────┴──► Account, kept beside the trace
//!  reader:  names and sizes of the files ──► differences()     cheap, for every report
//!           packets, read anyway         ──► Counter ──► the same StreamAccount or not
//! ```
//!
//! A stream counts by its packets as they are without compression: it may be compressed or
//! decompressed later without being another.

mod checksum;
mod compare;
mod difference;

use serde::{Deserialize, Serialize};

pub use checksum::{Checksum, Hasher};
pub use compare::{differences, differences_but, file_differences};
pub use difference::{Difference, Gaps};

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Its streams.
    pub streams: Vec<StreamAccount>,
    /// Its other files.
    pub files: Vec<FileAccount>,
}

/// What a stream file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamAccount {
    /// The file's name, without the ending of a compressed one.
    pub name: String,
    /// Id of the stream class.
    pub class: u64,
    /// Sequence number of the first packet.
    pub first: u64,
    /// Packets.
    pub packets: u64,
    /// Events; none if whoever copied the packets did not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Bytes of the packets.
    pub bytes: u64,
    /// Bytes of the file as it was written: fewer if it is compressed.
    pub stored: u64,
    /// The counter of discarded events in the last packet.
    pub discarded: u64,
    /// Of all bytes of the packets.
    pub checksum: Checksum,
}

/// A file that is no stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileAccount {
    /// Its path in the trace, without the ending of a compressed one.
    pub name: String,
    /// Its bytes, without compression.
    pub bytes: u64,
    /// Of these bytes; none if the name says it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
}

impl FileAccount {
    /// That of a file with this content.
    pub fn of(name: &str, content: &[u8]) -> Self {
        let checksum = Some(Checksum::of(content));
        Self { name: name.to_owned(), bytes: content.len() as u64, checksum }
    }
}

/// What the head of a packet says that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFacts {
    /// Id of the stream class.
    pub class: u64,
    /// Its sequence number; 0 if it has none.
    pub seq_num: u64,
    /// The counter of discarded events; 0 if it has none.
    pub discarded: u64,
    /// Events; none if nobody counted.
    pub events: Option<u64>,
}

/// Counts the packets of a stream file on their way in or out.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    account: StreamAccount,
    hasher: Hasher,
}

impl Counter {
    /// A packet, all of it.
    pub fn packet(&mut self, bytes: &[u8], facts: PacketFacts) {
        let account = &mut self.account;
        if account.packets == 0 {
            (account.class, account.first, account.events) = (facts.class, facts.seq_num, Some(0));
        }
        account.packets += 1;
        account.events = account.events.zip(facts.events).map(|(all, more)| all.saturating_add(more));
        account.bytes = account.bytes.saturating_add(bytes.len() as u64);
        account.discarded = facts.discarded;
        self.hasher.update(bytes);
    }

    /// Returns the account of the file of this name, which has so many bytes; none without packets.
    pub fn account(&self, name: &str, stored: u64) -> Option<StreamAccount> {
        let checksum = self.hasher.checksum();
        let account = StreamAccount { name: name.to_owned(), stored, checksum, ..self.account.clone() };
        (account.packets > 0).then_some(account)
    }
}

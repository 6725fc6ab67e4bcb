//! A trace beside its account, as far as names and sizes show it: nothing that is to be read
//! later is read here, but the heads of packets in streams of another size.

use std::collections::{HashMap, HashSet};

use super::{Account, Checksum, Difference, Gaps, StreamAccount};
use crate::read::{Files, PACKED, Trace};

/// Compressed streams of another size are decompressed to count their packets if they are not larger.
const MOST_COUNTED: u64 = 64 << 20;

/// Returns what is otherwise than the account says, streams first. `trace` is what was opened from
/// `files`.
///
/// Contents of streams are not compared, nor those of files without a checksum.
pub fn differences(files: &Files, trace: &Trace, account: &Account) -> Vec<Difference> {
    differences_but(files, trace, account, |_| false)
}

/// The same where who reads has seen already that some files, by their names, have the account's checksum.
pub fn differences_but(
    files: &Files,
    trace: &Trace,
    account: &Account,
    seen: impl Fn(&str) -> bool,
) -> Vec<Difference> {
    let mut all = streams(files, trace, &account.streams);
    all.extend(differences_of(files, account, seen));
    all
}

/// The same for the files beside the streams, where the metadata cannot be understood.
pub fn file_differences(files: &Files, account: &Account) -> Vec<Difference> {
    differences_of(files, account, |_| false)
}

fn differences_of(files: &Files, account: &Account, seen: impl Fn(&str) -> bool) -> Vec<Difference> {
    let mut all = Vec::new();
    for file in account.files.iter().filter(|file| file.checksum.is_none() || !seen(&file.name)) {
        let name = file.name.clone();
        let difference = match files.size(&file.name) {
            None => Some(Difference::FileMissing { name }),
            Some(found) if found != Some(file.bytes) => {
                Some(Difference::FileSize { name, found, written: file.bytes })
            }
            Some(_) => {
                let changed = |expected: Checksum| match files.read(&file.name) {
                    Ok(Some(bytes)) => Checksum::of(&bytes) != expected,
                    _ => true,
                };
                file.checksum.is_some_and(changed).then_some(Difference::FileContent { name })
            }
        };
        all.extend(difference);
    }
    all
}

fn plain(name: &str) -> &str {
    name.strip_suffix(PACKED).unwrap_or(name)
}

fn streams(files: &Files, trace: &Trace, accounts: &[StreamAccount]) -> Vec<Difference> {
    let known: HashMap<&str, &StreamAccount> = accounts.iter().map(|a| (a.name.as_str(), a)).collect();
    let mut by_size: HashMap<u64, &str> = HashMap::new();
    accounts.iter().for_each(|a| _ = by_size.entry(a.bytes).or_insert(&a.name));
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for index in 0..trace.stream_count() {
        let Some(name) = trace.stream_name(index) else { continue };
        let Some(account) = known.get(plain(name)) else {
            let size = trace.plain_len(index);
            let like = size.and_then(|size| by_size.get(&size)).map(|like| (*like).to_owned());
            all.push(Difference::Unlisted { name: name.to_owned(), like });
            continue;
        };
        if !seen.insert(account.name.as_str()) {
            all.push(Difference::Twice { name: account.name.clone() });
            continue;
        }
        all.extend(size(trace, index, name, account));
    }
    for account in accounts.iter().filter(|account| !seen.contains(account.name.as_str())) {
        let StreamAccount { name, packets, events, .. } = account.clone();
        all.push(match files.size(&name) {
            Some(_) => Difference::Empty { name, packets, events },
            None => Difference::Missing { name, packets, events },
        });
    }
    all
}

/// Compares sizes. A stream may have been compressed since, or decompressed.
fn size(trace: &Trace, index: usize, name: &str, account: &StreamAccount) -> Option<Difference> {
    let compressed = name.ends_with(PACKED);
    let stored = trace.stream_len(index)?;
    if compressed && stored == account.stored {
        return None;
    }
    let found = trace.plain_len(index);
    if found == Some(account.bytes) {
        return None;
    }
    let gaps =
        if !compressed || stored <= MOST_COUNTED { gaps(trace, index, account) } else { Gaps::default() };
    let (found, written) = match found {
        Some(found) => (found, account.bytes),
        // Frames that do not say their sizes, or are cut.
        None => (stored, account.stored),
    };
    Some(Difference::Size { name: account.name.clone(), found, written, gaps })
}

fn gaps(trace: &Trace, index: usize, account: &StreamAccount) -> Gaps {
    let mut gaps = Gaps { written: account.packets, ..Gaps::default() };
    let Some(mut reader) = trace.stream(index) else { return gaps };
    while let Some(packet) = reader.pass_packet() {
        let Ok(packet) = packet else { continue };
        let whole = reader.is_whole();
        if gaps.found == 0 && whole {
            gaps.first = packet.seq_num.unwrap_or(account.first).saturating_sub(account.first);
        }
        gaps.middle = gaps.middle.saturating_add(packet.missing_before);
        gaps.found += u64::from(whole);
    }
    gaps
}

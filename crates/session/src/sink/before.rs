//! Packets of records from before: those that readers of later ones need.

use std::io;

use hetrace_ctf::write::PacketPreamble;

use super::store::Earlier;

/// Records of one packet lie less than this apart, so that their 32 bits of time are clear.
const REACH: u64 = 1 << 31;
/// A packet of records from before has about this many bytes at most.
const PACKET: usize = 256 << 10;

/// Gives records whose packets are gone to `put`, in packets of their own.
pub fn before(
    mut put: impl FnMut(PacketPreamble, &[u8], u64) -> io::Result<()>,
    earlier: &[Earlier],
) -> io::Result<()> {
    let fits = |a: &Earlier, b: &Earlier| {
        (a.of.vpid, a.of.vtid, a.of.procname) == (b.of.vpid, b.of.vtid, b.of.procname)
            && b.time - a.time < REACH
    };
    let mut put_before = |records: &[Earlier], body: &[u8]| {
        let Some((first, last)) = records.first().zip(records.last()) else { return Ok(()) };
        let (timestamp_begin, timestamp_end) = (first.time, last.time);
        let preamble = PacketPreamble { timestamp_begin, timestamp_end, events_discarded: 0, ..first.of };
        put(preamble, body, records.len() as u64)
    };
    for run in earlier.chunk_by(fits) {
        let (mut body, mut part) = (Vec::new(), 0..0);
        for record in run {
            if !body.is_empty() && body.len() + record.bytes.len() > PACKET {
                put_before(run.get(part.clone()).unwrap_or_default(), &body)?;
                body.clear();
                part.start = part.end;
            }
            body.extend_from_slice(&record.bytes);
            part.end += 1;
        }
        put_before(run.get(part).unwrap_or_default(), &body)?;
    }
    Ok(())
}

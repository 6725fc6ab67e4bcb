//! Traces as LTTng writes them: a stream of each CPU, with all threads that ran on it.

use hetrace_trace::trace::{Manifest, Trace};

/// The metadata of a stream as LTTng's per-CPU streams are, of several threads, with texts and lists in it.
fn metadata(order: &str) -> String {
    let event = |id: u32, name: &str, fields: &str| {
        format!("event {{ name = \"{name}\"; id = {id}; fields := struct {{ {fields} }}; }};")
    };
    let events = [
        event(0, "x:work_entry", "string text; u32 pad;"),
        event(1, "x:work_exit", "u64 pad;"),
        event(2, "x:rest_entry", "u8 length; u16 list[length];"),
        event(3, "x:rest_exit", ""),
        event(4, "x:tick", "u64 pad;"),
    ];
    format!(
        "/* CTF 1.8 */
        typealias integer {{ size = 8; align = 8; }} := u8;
        typealias integer {{ size = 16; align = 8; }} := u16;
        typealias integer {{ size = 32; align = 8; }} := u32;
        typealias integer {{ size = 64; align = 8; }} := u64;
        trace {{ major = 1; minor = 8; byte_order = {order}; packet.header := struct {{ u32 magic; }}; }};
        clock {{ name = c; }};
        typealias integer {{ size = 32; align = 8; map = clock.c.value; }} := short;
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := stamp;
        stream {{
            packet.context := struct {{
                stamp timestamp_begin; stamp timestamp_end; u32 content_size; u32 packet_size;
            }};
            event.header := struct {{
                enum : u16 {{ compact = 0 ... 65534, extended = 65535 }} id;
                variant <id> {{
                    struct {{ short timestamp; }} compact;
                    struct {{ u32 id; stamp timestamp; }} extended;
                }} v;
            }};
            event.context := struct {{ u32 vpid; u32 vtid; }};
        }};
        {}",
        events.concat()
    )
}

/// Steps of a CPU: which thread, how much later, which event, whether in the long form, and whether a packet ends.
pub type Ticks = Vec<(u8, u32, u8, bool, bool)>;

/// A trace of these streams, in one byte order.
pub fn trace(big: bool, cpus: &[Ticks]) -> Trace {
    let bytes_of = |cpu: &Ticks| {
        let (mut file, mut time) = (Vec::new(), 0u64);
        for packet in cpu.split_inclusive(|tick| tick.4) {
            let (mut body, mut begin) = (Vec::new(), None);
            let int = |to: &mut Vec<u8>, value: u64, bytes: usize| match big {
                true => to.extend(&value.to_be_bytes()[8 - bytes..]),
                false => to.extend(&value.to_le_bytes()[..bytes]),
            };
            for (thread, gap, event, long, _) in packet {
                time += u64::from(*gap);
                // Whoever reads no more than 32 bits of it has to know those above.
                let long = *long || u64::from(*gap) >= 1 << 31;
                begin.get_or_insert(time);
                let id = u64::from(event % 5);
                int(&mut body, if long { 0xffff } else { id }, 2);
                if long {
                    int(&mut body, id, 4);
                }
                int(&mut body, time, if long { 8 } else { 4 });
                int(&mut body, 1 + u64::from(thread % 2), 4);
                int(&mut body, 1 + u64::from(thread % 3), 4);
                match id {
                    0 => {
                        body.extend(&b"some text\0"[usize::from(event % 9)..]);
                        int(&mut body, 7, 4);
                    }
                    2 => {
                        body.push(event % 7);
                        body.extend(std::iter::repeat_n(0xff, usize::from(event % 7) * 2));
                    }
                    3 => {}
                    _ => int(&mut body, u64::MAX, 8),
                }
            }
            let bits = (body.len() as u64 + 28) * 8;
            int(&mut file, 0xc1fc_1fc1, 4);
            int(&mut file, begin.unwrap_or(time), 8);
            int(&mut file, time, 8);
            int(&mut file, bits, 4);
            int(&mut file, bits, 4);
            file.extend(body);
        }
        file
    };
    let files = cpus.iter().enumerate().map(|(cpu, ticks)| (format!("x_{cpu}"), bytes_of(ticks))).collect();
    let metadata = metadata(if big { "be" } else { "le" });
    let ctf = hetrace_ctf::read::Trace::from_parts(metadata.as_bytes(), files).expect("a trace");
    Trace::new(ctf, Vec::new(), Manifest::default())
}

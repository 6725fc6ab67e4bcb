//! Leaders have chunks: strategies `chunks`, `chunks-per-sm` and `padded`.
//!
//! Chunks are large ones of 4,096 bytes and small ones of 256, sixteen of them in the place of a large one. The first chunk
//! of a leader is small, so that warps that record little take little; all others are large. Where there are none of one
//! size, it is the other. With `padded` a leader's first chunk is large, and it gets no other.

use hetrace_pool::{ASKED_SMALL, COUNT, COUNTERS, MOST, PLACES, STRIDE, Size, Strategy, TICKET, TICKET_BITS};

use super::Coder;
use super::room::{LOST, MOST_LOST, Room, Way, full, head, home, pool, registers};

/// No counter that is so large is looked at: numbers of chunks would begin anew.
const FAR: u32 = 1 << 24;
/// The same where a row has as many places as there are multiprocessors.
const FAR_PER_SM: u32 = 1 << 21;
/// Units of 16 bytes in a large chunk.
const UNITS: u32 = 256;
/// Counters of small chunks are held here once there is no room: warps that do not see that yet go on asking.
const HELD: u32 = 1 << 22;

const _: () = assert!(
    MOST / (2 * COUNTERS as u64) * Size::Small.per_place() < HELD as u64 && HELD < 1 << (TICKET_BITS - 1)
);

pub(super) struct Chunks;

impl Room for Chunks {
    /// Asks for the first chunk, which is not waited for: nothing looks at the cursor before something is to be written. Not
    /// of who is off.
    fn ahead(&self, coder: &mut Coder<'_>) {
        let Some(first) = coder.strategy.first() else { return };
        coder.line("activemask.b32 %#_m;");
        coder.line("mov.u32 %#_x, %lanemask_lt;");
        coder.line("and.b32 %#_x, %#_m, %#_x;");
        coder.line("setp.eq.and.u32 %#_l, %#_x, 0, !%#_q;");
        coder.line("add.u32 %#_d, %#_x, 1;");
        own(coder, "%#_v", "%#_u");
        coder.line("mul.wide.u32 %#_a, %#_v, 64;");
        coder.line("add.u64 %#_a, %#_a, %#_b;");
        let at = coder.strategy.counter_at(first);
        coder.line(&format!("@%#_l atom.global.add.u32 %#_cur, [%#_a+{at}], %#_d;"));
    }

    fn record(&self, coder: &mut Coder<'_>, [first, second, third]: [&str; 3]) {
        let go = coder.label();
        coder.line("and.b32 %#_x, %#_cur, 15;");
        coder.line("setp.eq.and.u32 %#_q, %#_x, 0, %#_l;");
        coder.line(&format!("@!%#_q bra {go};"));
        room(coder);
        coder.line(&format!("setp.lt.u32 %#_l, %#_cur, {LOST:#x};"));
        coder.put(&go);
        coder.pool();
        coder.line("mul.wide.u32 %#_a, %#_cur, 16;");
        coder.line("add.u64 %#_a, %#_a, %#_b;");
        coder.line(&format!("@%#_l st.global.cs.v4.u32 [%#_a], {{{first}, {second}, {third}, %#_w3}};"));
        coder.line("@%#_l add.u32 %#_cur, %#_cur, 1;");
    }

    fn say(&self, coder: &mut Coder<'_>, word: u32, way: &Way<'_>) {
        let Way { write, join, missed } = way;
        coder.line("and.b32 %#_rx, %#_cur, 15;");
        coder.line("setp.ne.u32 %#_rp, %#_rx, 0;");
        coder.line("setp.ge.and.s32 %#_rp, %#_cur, 0, %#_rp;");
        coder.line(&format!("@%#_rp bra {write};"));
        coder.line("mov.u32 %#_rc, %#_cur;");
        coder.line(&format!("mov.u32 %#_rn, {};", coder.number));
        coder.line("mov.u32 %#_rs, %#_since;");
        let found = coder.label();
        chunk(coder, &found);
        coder.put(&found);
        coder.line(&format!("setp.ge.u32 %#_rp, %#_ro, {LOST:#x};"));
        coder.line(&format!("@%#_rp bra {missed};"));
        coder.put(write);
        pool(coder);
        coder.line("mul.wide.u32 %#_ra, %#_ro, 16;");
        coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
        coder.line(&format!("mov.u32 %#_rx, {word:#x};"));
        coder.line("st.global.cs.v4.u32 [%#_ra], {%#_rk, %#_rd, %#_path, %#_rx};");
        coder.line("add.u32 %#_ro, %#_ro, 1;");
        coder.line(&format!("bra {join};"));
    }
}

/// Writes the counter that a lane asks first.
fn own(coder: &mut Coder<'_>, into: &str, with: &str) {
    if coder.strategy.is_per_multiprocessor() {
        return coder.line(&format!("mov.u32 {into}, %#_sm;"));
    }
    home(coder, into, with);
}

/// A leader whose cursor is `#_cur` takes its next chunk for a record at `#_clk`, or counts a loss.
fn room(coder: &mut Coder<'_>) {
    coder.line("{");
    registers(coder);
    let (over, counts) = (coder.label(), coder.label());
    coder.line("mov.u32 %#_rc, %#_cur;");
    coder.line("mov.u32 %#_ro, %#_cur;");
    coder.line("mov.u32 %#_rk, %#_clk;");
    coder.line("mov.u32 %#_rs, %#_clk;");
    coder.line(&format!("mov.u32 %#_rn, {};", coder.number));
    coder.line(&format!("setp.ge.u32 %#_rp, %#_rc, {LOST:#x};"));
    coder.line(&format!("@%#_rp bra {counts};"));
    chunk(coder, &over);
    coder.line(&format!("bra {over};"));
    coder.put(&counts);
    coder.line(&format!("setp.lt.u32 %#_rp, %#_rc, {MOST_LOST:#x};"));
    coder.line("@%#_rp add.u32 %#_ro, %#_rc, 16;");
    coder.put(&over);
    coder.line("mov.u32 %#_cur, %#_ro;");
    coder.line("}");
}

/// A leader with the cursor `#_rc` takes a chunk, and goes on at `over`; `#_ro` is its new cursor. There are two attempts
/// and no loop: lanes that wait would go on without their leader.
fn chunk(coder: &mut Coder<'_>, over: &str) {
    let (ask, begin) = (coder.label(), coder.label());
    let padded = coder.strategy == Strategy::Padded;
    pool(coder);
    // A first chunk that was asked for at the kernel's begin; first ones are small.
    coder.line("setp.lt.s32 %#_rq, %#_rc, 0;");
    // Only there is one asked for ahead.
    if coder.paths && coder.strategy == Strategy::Chunks {
        ticket(coder, &begin);
    }
    coder.line("setp.eq.u32 %#_rt, %#_rc, 0;");
    coder.line("or.pred %#_rt, %#_rt, %#_rq;");
    coder.line(&format!("@%#_rt bra {ask};"));
    coder.line("and.b32 %#_rx, %#_rc, 255;");
    if padded {
        // In the middle of its place, or at its end: there is room in the pool, but not for this leader.
        coder.line("setp.ne.u32 %#_rp, %#_rx, 0;");
        coder.line(&format!("@%#_rp bra {over};"));
        coder.line(&format!("mov.u32 %#_ro, {:#x};", LOST + 16));
        coder.line(&format!("bra {over};"));
    } else {
        coder.line("setp.eq.u32 %#_rp, %#_rx, 0;");
        coder.line(&format!("@%#_rp bra {ask};"));
        is_large(coder);
        coder.line(&format!("@%#_rp bra {over};"));
    }
    coder.put(&ask);
    own(coder, "%#_rv", "%#_ru");
    if coder.strategy == Strategy::Chunks {
        // Later ones by any of the counters, so that they are used alike however few ask.
        coder.line("shr.u32 %#_ru, %#_rk, 3;");
        coder.line(&format!("and.b32 %#_ru, %#_ru, {};", COUNTERS - 1));
        coder.line("selp.b32 %#_ru, 0, %#_ru, %#_rq;");
        coder.line("xor.b32 %#_rv, %#_rv, %#_ru;");
    }
    // One, in a way that is not seen: for a constant, code is made that first adds up what lanes add.
    coder.line("clz.b32 %#_rh, %#_rn;");
    coder.line("shr.u32 %#_rh, %#_rh, 6;");
    coder.line("add.u32 %#_rh, %#_rh, 1;");
    coder.line("mov.u32 %#_rx, %#_rc;");
    coder.line("not.pred %#_rq, %#_rq;");
    if padded {
        coder.line("setp.ne.u32 %#_rt, %#_rc, %#_rc;");
    }
    attempt(coder, "@%#_rq ", &begin);
    if !padded {
        coder.line("not.pred %#_rt, %#_rt;");
        if coder.strategy == Strategy::Chunks {
            coder.line("xor.b32 %#_rv, %#_rv, 16;");
        }
        attempt(coder, "", &begin);
    }
    if coder.strategy == Strategy::Chunks {
        hold(coder);
    }
    full(coder);
    coder.line(&format!("bra {over};"));
    coder.put(&begin);
    // In units of 256 bytes from the pool's begin.
    coder.line(&format!("add.u32 %#_ri, %#_rx, {};", coder.strategy.header_bytes() / Size::Small.bytes()));
    coder.line("mul.wide.u32 %#_ra, %#_ri, 256;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    head(coder);
    coder.line("mad.lo.u32 %#_ro, %#_ri, 16, 4;");
}

/// Goes on at `begin` if `#_rc` is what a counter of small chunks returned (`#_rq`) and its chunk is there: `#_rx` as from
/// [`attempt`]. This is the way of all short warps, and most of what they execute.
fn ticket(coder: &mut Coder<'_>, begin: &str) {
    let other = coder.label();
    coder.line(&format!("@!%#_rq bra {other};"));
    coder.line(&format!("ld.global.u32 %#_ri, [%#_rb+{PLACES}];"));
    coder.line(&format!("and.b32 %#_rx, %#_rc, {:#x};", (1u32 << TICKET_BITS) - 1));
    coder.line(&format!("shr.u32 %#_ru, %#_rc, {TICKET_BITS};"));
    coder.line(&format!("and.b32 %#_ru, %#_ru, {};", 2 * COUNTERS - 1));
    coder.line("shr.u32 %#_ry, %#_rx, 4;");
    coder.line(&format!("mad.lo.u32 %#_ru, %#_ry, {}, %#_ru;", 2 * COUNTERS));
    coder.line("and.b32 %#_rx, %#_rx, 15;");
    coder.line("mad.lo.u32 %#_rx, %#_ru, 16, %#_rx;");
    coder.line("setp.lt.u32 %#_rp, %#_ru, %#_ri;");
    coder.line(&format!("@%#_rp bra {begin};"));
    coder.put(&other);
}

/// Takes a leader's counter of small chunks back to where it has long had none: it would come to the bits above its count. `#_rv` is
/// the other one, of the second attempt.
fn hold(coder: &mut Coder<'_>) {
    coder.line("xor.b32 %#_rv, %#_rv, 16;");
    coder.line(&format!("shl.b32 %#_rx, %#_rv, {TICKET_BITS};"));
    coder.line(&format!("add.u32 %#_rx, %#_rx, {:#x};", TICKET + HELD + ((COUNTERS as u32) << TICKET_BITS)));
    coder.line(&format!("mul.wide.u32 %#_ra, %#_rv, {STRIDE};"));
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line(&format!("red.global.min.u32 [%#_ra+{ASKED_SMALL}], %#_rx;"));
}

/// Whether the cursor `#_rc`, which is not at the end of a place, is in a large chunk: `#_rp`. Rows of places have large and
/// small ones in turn.
fn is_large(coder: &mut Coder<'_>) {
    let before = coder.strategy.header_bytes() / Size::Large.bytes();
    coder.line(&format!("shr.u32 %#_rx, %#_rc, {};", UNITS.ilog2()));
    coder.line(&format!("sub.u32 %#_rx, %#_rx, {before};"));
    if coder.strategy == Strategy::Chunks {
        coder.line(&format!("and.b32 %#_rx, %#_rx, {COUNTERS};"));
    } else {
        coder.line(&format!("ld.global.u32 %#_ri, [%#_rb+{COUNT}];"));
        coder.line("div.u32 %#_rx, %#_rx, %#_ri;");
        coder.line("and.b32 %#_rx, %#_rx, 1;");
    }
    coder.line("setp.eq.u32 %#_rp, %#_rx, 0;");
}

/// Asks a counter for a chunk; if there is one, its place is in `#_rx`, in units of 256 bytes.
fn attempt(coder: &mut Coder<'_>, asks: &str, begin: &str) {
    let strategy = coder.strategy;
    let at = strategy.counter_at(Size::Large);
    coder.line(&format!(
        "selp.b32 %#_ru, {}, 0, %#_rt;",
        Strategy::Chunks.counter_at(Size::Small) - Strategy::Chunks.counter_at(Size::Large)
    ));
    coder.line("mad.lo.u32 %#_ru, %#_rv, 64, %#_ru;");
    coder.line("cvt.u64.u32 %#_ra, %#_ru;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line(&format!("{asks}atom.global.add.u32 %#_rx, [%#_ra+{at}], %#_rh;"));
    let (counts, most) = ((1u32 << TICKET_BITS) - 1, 0x3fff_ffff);
    if strategy == Strategy::Chunks {
        coder.line(&format!("selp.b32 %#_ry, {counts:#x}, {most:#x}, %#_rt;"));
        coder.line("and.b32 %#_rx, %#_rx, %#_ry;");
    } else {
        coder.line(&format!("and.b32 %#_rx, %#_rx, {most:#x};"));
    }
    // Rows of places, one for each counter: large ones in one row, small ones in the next, if there are such.
    let far = if strategy.is_per_multiprocessor() { FAR_PER_SM } else { FAR };
    coder.line(&format!("setp.lt.u32 %#_rp, %#_rx, {far};"));
    coder.line("and.b32 %#_ru, %#_rx, 15;");
    coder.line("selp.b32 %#_ru, %#_ru, 0, %#_rt;");
    coder.line("shr.u32 %#_ry, %#_rx, 4;");
    coder.line("selp.b32 %#_rx, %#_ry, %#_rx, %#_rt;");
    if strategy.is_per_multiprocessor() {
        coder.line(&format!("ld.global.u32 %#_ri, [%#_rb+{COUNT}];"));
        coder.line("selp.b32 %#_ry, %#_ri, 0, %#_rt;");
        coder.line("add.u32 %#_ry, %#_ry, %#_rv;");
        coder.line("shl.b32 %#_ri, %#_ri, 1;");
        coder.line("mad.lo.u32 %#_rx, %#_rx, %#_ri, %#_ry;");
    } else {
        let step = COUNTERS * strategy.sizes().len();
        coder.line(&format!("selp.b32 %#_ry, {COUNTERS}, 0, %#_rt;"));
        coder.line("add.u32 %#_ry, %#_ry, %#_rv;");
        coder.line(&format!("mad.lo.u32 %#_rx, %#_rx, {step}, %#_ry;"));
    }
    coder.line("ld.global.u32 %#_ri, [%#_rb+8];");
    coder.line("setp.lt.and.u32 %#_rp, %#_rx, %#_ri, %#_rp;");
    coder.line("mad.lo.u32 %#_rx, %#_rx, 16, %#_ru;");
    coder.line(&format!("@%#_rp bra {begin};"));
}

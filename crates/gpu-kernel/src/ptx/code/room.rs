//! What twins do where a chunk is to be begun, or much is to be said at once. It stands at each place: lanes that came
//! back from a function that all places call did not go on together on an H100, and some met in it that were at other places.
//!
//! Chunks are large ones of 4,096 bytes and small ones of 256, sixteen of them in the place of a large one. The first chunk
//! of a leader is small, so that warps that record little take little; all others are large. Where there are none of one
//! size, it is the other.

use hetrace_pool::{ASKED, ASKED_SMALL, COUNTERS, FULL, HOST_FULL, MISSED, loss_slot};

use super::Coder;

/// No chunk is to be had: this, and 16 for each record that was not made.
pub(super) const LOST: u32 = 0xc000_0000;
/// Nothing is recorded.
pub(super) const OFF: u32 = 0xffff_fff0;
/// Losses are counted up to here.
const MOST_LOST: u32 = 0xffff_ffe0;
/// No counter that is so large is looked at: numbers of chunks would begin anew.
const FAR: u32 = 1 << 24;

/// Writes the counter that a lane asks first: neighbours ask different ones, and the same lane always the same one.
pub(super) fn home(coder: &mut Coder<'_>, into: &str, with: &str) {
    coder.line(&format!("mov.u32 {into}, %ctaid.x;"));
    coder.line(&format!("mov.u32 {with}, %ntid.x;"));
    coder.line(&format!("mul.lo.u32 {into}, {into}, {with};"));
    coder.line(&format!("mov.u32 {with}, %tid.x;"));
    coder.line(&format!("add.u32 {into}, {into}, {with};"));
    coder.line(&format!("shr.u32 {into}, {into}, 5;"));
    coder.line(&format!("and.b32 {into}, {into}, {};", COUNTERS - 1));
}

/// A leader whose cursor is `#_cur` takes its next chunk for a record at `#_clk`, or counts a loss.
pub(super) fn room(coder: &mut Coder<'_>) {
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

fn registers(coder: &mut Coder<'_>) {
    coder.line(".reg .pred %#_rp, %#_rq, %#_rl, %#_rt;");
    coder.line(".reg .b32 %#_rm, %#_rd, %#_rx, %#_ry, %#_ru, %#_rv, %#_ri, %#_rh, %#_rs;");
    coder.line(".reg .b32 %#_rc, %#_ro, %#_rn, %#_rk;");
    coder.line(".reg .b64 %#_ra, %#_rb, %#_re, %#_rf;");
}

/// Lanes say which ways they went: `#_path`. The last word of the record is `word`.
pub(super) fn say(coder: &mut Coder<'_>, word: u32) {
    coder.line("{");
    registers(coder);
    let [over, join, write, missed] = [coder.label(), coder.label(), coder.label(), coder.label()];
    coder.line("mov.u32 %#_ro, %#_cur;");
    // What a lane could not say is missing for good: it is in no later record.
    coder.line(&format!("setp.ge.u32 %#_rp, %#_cur, {LOST:#x};"));
    coder.line(&format!("@%#_rp bra {over};"));
    coder.line("activemask.b32 %#_rm;");
    coder.line("mov.u32 %#_rk, %clock;");
    coder.line("match.any.sync.b32 %#_rd, %#_path, %#_rm;");
    coder.line("mov.u32 %#_rx, %lanemask_lt;");
    coder.line("and.b32 %#_rx, %#_rd, %#_rx;");
    coder.line("setp.ne.u32 %#_rl, %#_rx, 0;");
    coder.line(&format!("@%#_rl bra {join};"));
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
    coder.put(&write);
    pool(coder);
    coder.line("mul.wide.u32 %#_ra, %#_ro, 16;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line(&format!("mov.u32 %#_rx, {word:#x};"));
    coder.line("st.global.cs.v4.u32 [%#_ra], {%#_rk, %#_rd, %#_path, %#_rx};");
    coder.line("add.u32 %#_ro, %#_ro, 1;");
    coder.line(&format!("bra {join};"));
    coder.put(&missed);
    missing(coder);
    coder.put(&join);
    // If the leader found no room, all of them have lost it.
    coder.line("mov.u32 %#_cur, %#_ro;");
    coder.line("brev.b32 %#_rx, %#_rd;");
    coder.line("clz.b32 %#_rx, %#_rx;");
    coder.line("shfl.sync.idx.b32 %#_ry, %#_ro, %#_rx, 31, %#_rd;");
    coder.line(&format!("setp.ge.u32 %#_rp, %#_ry, {LOST:#x};"));
    coder.line(&format!("@%#_rp mov.u32 %#_cur, {LOST:#x};"));
    coder.put(&over);
    coder.line("}");
}

/// Adds what a lane has counted to the pool's losses: to one of several counters, as all warps of a device may come by here.
pub(super) fn lost(coder: &mut Coder<'_>) {
    coder.line("{");
    registers(coder);
    let over = coder.label();
    coder.line("mov.u32 %#_ro, %#_cur;");
    coder.line(&format!("setp.eq.u32 %#_rp, %#_ro, {OFF:#x};"));
    coder.line(&format!("@%#_rp bra {over};"));
    missing(coder);
    coder.put(&over);
    coder.line("}");
}

/// Adds what the cursor in `#_ro` has counted: to the kernel's own sum, if that is free or the kernel's already, else to one
/// of those of all kernels.
fn missing(coder: &mut Coder<'_>) {
    let (slot, owner) = (loss_slot(coder.number), coder.number.wrapping_add(1));
    pool(coder);
    home(coder, "%#_rv", "%#_ru");
    coder.line("mul.wide.u32 %#_ra, %#_rv, 64;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line("mov.u32 %#_rx, 0;");
    coder.line(&format!("mov.u32 %#_ry, {owner};"));
    coder.line(&format!("atom.global.cas.b32 %#_ru, [%#_rb+{slot}], %#_rx, %#_ry;"));
    coder.line("setp.eq.u32 %#_rp, %#_ru, 0;");
    coder.line("setp.eq.or.u32 %#_rp, %#_ru, %#_ry, %#_rp;");
    coder.line(&format!("add.u64 %#_rf, %#_rb, {};", slot + 8));
    coder.line(&format!("add.u64 %#_ra, %#_ra, {MISSED};"));
    coder.line("selp.b64 %#_ra, %#_rf, %#_ra, %#_rp;");
    coder.line(&format!("sub.u32 %#_rx, %#_ro, {LOST:#x};"));
    coder.line("shr.u32 %#_rx, %#_rx, 4;");
    coder.line("cvt.u64.u32 %#_re, %#_rx;");
    coder.line("red.global.add.u64 [%#_ra], %#_re;");
}

fn pool(coder: &mut Coder<'_>) {
    let (space, name) = coder.base;
    coder.line(&format!("ld.{space}.u64 %#_rb, [{name}];"));
}

/// A leader with the cursor `#_rc` takes a chunk, and goes on at `over`; `#_ro` is its new cursor. There are two attempts
/// and no loop: lanes that wait would go on without their leader.
fn chunk(coder: &mut Coder<'_>, over: &str) {
    let (ask, begin) = (coder.label(), coder.label());
    pool(coder);
    // A first chunk that was asked for at the kernel's begin; first ones are small.
    coder.line("setp.lt.s32 %#_rq, %#_rc, 0;");
    coder.line("setp.eq.u32 %#_rt, %#_rc, 0;");
    coder.line("or.pred %#_rt, %#_rt, %#_rq;");
    coder.line(&format!("@%#_rt bra {ask};"));
    coder.line("and.b32 %#_rx, %#_rc, 255;");
    coder.line("setp.eq.u32 %#_rp, %#_rx, 0;");
    coder.line(&format!("@%#_rp bra {ask};"));
    // In the middle of a large one?
    coder.line("shr.u32 %#_rx, %#_rc, 8;");
    coder.line("sub.u32 %#_rx, %#_rx, 1;");
    coder.line("and.b32 %#_rx, %#_rx, 32;");
    coder.line("setp.eq.u32 %#_rp, %#_rx, 0;");
    coder.line(&format!("@%#_rp bra {over};"));
    coder.put(&ask);
    home(coder, "%#_rv", "%#_ru");
    // Later ones by any of the counters, so that they are used alike however few ask.
    coder.line("shr.u32 %#_ru, %#_rk, 3;");
    coder.line(&format!("and.b32 %#_ru, %#_ru, {};", COUNTERS - 1));
    coder.line("selp.b32 %#_ru, 0, %#_ru, %#_rq;");
    coder.line("xor.b32 %#_rv, %#_rv, %#_ru;");
    // One, in a way that is not seen: for a constant, code is made that first adds up what lanes add.
    coder.line("clz.b32 %#_rh, %#_rn;");
    coder.line("shr.u32 %#_rh, %#_rh, 6;");
    coder.line("add.u32 %#_rh, %#_rh, 1;");
    coder.line("mov.u32 %#_rx, %#_rc;");
    coder.line("not.pred %#_rq, %#_rq;");
    attempt(coder, "@%#_rq ", &begin);
    coder.line("not.pred %#_rt, %#_rt;");
    coder.line("xor.b32 %#_rv, %#_rv, 16;");
    attempt(coder, "", &begin);
    coder.line(&format!("st.volatile.global.u32 [%#_rb+{FULL}], %#_rh;"));
    coder.line(&format!("ld.global.u64 %#_ra, [%#_rb+{HOST_FULL}];"));
    coder.line("setp.ne.u64 %#_rp, %#_ra, 0;");
    coder.line("@%#_rp st.volatile.global.u32 [%#_ra], %#_rh;");
    coder.line(&format!("mov.u32 %#_ro, {:#x};", LOST + 16));
    coder.line(&format!("bra {over};"));
    coder.put(&begin);
    header(coder);
}

/// Asks a counter for a chunk; if there is one, its place is in `#_rx`, in units of 256 bytes.
fn attempt(coder: &mut Coder<'_>, asks: &str, begin: &str) {
    coder.line(&format!("selp.b32 %#_ru, {}, 0, %#_rt;", ASKED_SMALL - ASKED));
    coder.line("mad.lo.u32 %#_ru, %#_rv, 64, %#_ru;");
    coder.line("cvt.u64.u32 %#_ra, %#_ru;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line(&format!("{asks}atom.global.add.u32 %#_rx, [%#_ra+{ASKED}], %#_rh;"));
    coder.line("and.b32 %#_rx, %#_rx, 0x3fffffff;");
    // Rows of 32 places, by counter: large ones in one row, small ones in the next.
    coder.line(&format!("setp.lt.u32 %#_rp, %#_rx, {FAR};"));
    coder.line("and.b32 %#_ru, %#_rx, 15;");
    coder.line("selp.b32 %#_ru, %#_ru, 0, %#_rt;");
    coder.line("shr.u32 %#_ry, %#_rx, 4;");
    coder.line("selp.b32 %#_rx, %#_ry, %#_rx, %#_rt;");
    coder.line("selp.b32 %#_ry, 32, 0, %#_rt;");
    coder.line("add.u32 %#_ry, %#_ry, %#_rv;");
    coder.line("mad.lo.u32 %#_rx, %#_rx, 64, %#_ry;");
    coder.line("ld.global.u32 %#_ri, [%#_rb+8];");
    coder.line("setp.lt.and.u32 %#_rp, %#_rx, %#_ri, %#_rp;");
    coder.line("mad.lo.u32 %#_rx, %#_rx, 16, %#_ru;");
    coder.line(&format!("@%#_rp bra {begin};"));
}

/// Begins the chunk at `#_rx`: behind the pool's header, in units of 256 bytes.
fn header(coder: &mut Coder<'_>) {
    coder.line("add.u32 %#_ri, %#_rx, 16;");
    coder.line("mul.wide.u32 %#_ra, %#_ri, 256;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line("mov.u64 %#_re, %clock64;");
    coder.line("mov.u64 %#_rf, %globaltimer;");
    coder.line("st.global.u64 [%#_ra+16], %#_rf;");
    coder.line("mov.u64 %#_rf, %gridid;");
    coder.line("st.global.v2.u64 [%#_ra], {%#_rf, %#_re};");
    coder.line("add.u32 %#_ry, %#_rn, 1;");
    coder.line("st.global.v2.u32 [%#_ra+24], {%#_ry, %#_rs};");
    triple(coder, "ctaid");
    // Of a first chunk nothing is before it.
    coder.line("setp.lt.s32 %#_rq, %#_rc, 0;");
    coder.line("selp.b32 %#_rs, 0, %#_rc, %#_rq;");
    coder.line("mov.u32 %#_ru, %tid.z;");
    coder.line("mov.u32 %#_rv, %ntid.y;");
    coder.line("mov.u32 %#_rh, %tid.y;");
    coder.line("mad.lo.u32 %#_ru, %#_ru, %#_rv, %#_rh;");
    coder.line("mov.u32 %#_rv, %ntid.x;");
    coder.line("mov.u32 %#_rh, %tid.x;");
    coder.line("mad.lo.u32 %#_ru, %#_ru, %#_rv, %#_rh;");
    coder.line("mov.u32 %#_rv, %smid;");
    coder.line("shl.b32 %#_rv, %#_rv, 16;");
    coder.line("or.b32 %#_ru, %#_ru, %#_rv;");
    coder.line("st.global.v4.u32 [%#_ra+32], {%#_ry, %#_rx, %#_ru, %#_rs};");
    triple(coder, "ntid");
    coder.line("mov.u32 %#_ru, %#_ry;");
    coder.line("mov.u32 %#_rv, %#_rx;");
    triple(coder, "nctaid");
    coder.line("st.global.v4.u32 [%#_ra+48], {%#_ru, %#_rv, %#_ry, %#_rx};");
    coder.line("mad.lo.u32 %#_ro, %#_ri, 16, 4;");
}

/// Three numbers, of 32, 16 and 16 bits, in `#_ry` and `#_rx`.
fn triple(coder: &mut Coder<'_>, of: &str) {
    coder.line(&format!("mov.u32 %#_rx, %{of}.z;"));
    coder.line("shl.b32 %#_rx, %#_rx, 16;");
    coder.line(&format!("mov.u32 %#_ry, %{of}.y;"));
    coder.line("or.b32 %#_rx, %#_rx, %#_ry;");
    coder.line(&format!("mov.u32 %#_ry, %{of}.x;"));
}

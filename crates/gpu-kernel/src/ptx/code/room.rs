//! How leaders get room: what is common to all strategies, and what one has to say for itself ([`Room`]). A family of them is
//! a file: [`super::chunks`], [`super::cursors`]. Where things then lie has [`hetrace_pool::Layout`].
//!
//! All of it stands at each place: lanes that came back from a function that all places call did not go on together on an H100,
//! and some met in it that were at other places.

use hetrace_pool::{COUNT, COUNTERS, FULL, HOST_FULL, MISSED, STRIDE, loss_slot, since_slot};

use super::{Coder, WAY_TO_END};

/// What a family of strategies executes.
///
/// The cursor of a lane is its own affair below [`LOST`], but for 0, as which it begins. [`OFF`] is who records nothing.
pub(super) trait Room {
    /// At a twin's begin, in mode paths, of lanes that are not off (`#_q`): what can be asked for before it is needed.
    fn ahead(&self, coder: &mut Coder<'_>);

    /// Leaders (`#_l`) write a record at `#_clk`: these words, and `#_w3`. Who finds no room becomes [`LOST`], and 16 for each
    /// record that it did not write; `#_l` may be false for it from here on. Lanes are together behind it as before it.
    fn record(&self, coder: &mut Coder<'_>, words: [&str; 3]);

    /// A leader with a cursor below [`LOST`], which is in `#_cur` and `#_ro`, writes what its lanes (`#_rd`) say at `#_rk`:
    /// `#_path`, and `word` as the last one. `#_ro` is then its new cursor, and it goes on at a place of `way`.
    fn say(&self, coder: &mut Coder<'_>, word: u32, way: &Way<'_>);
}

/// Where [`Room::say`] goes on.
pub(super) struct Way<'a> {
    /// A label for its own use.
    pub(super) write: &'a str,
    /// It was written.
    pub(super) join: &'a str,
    /// There was no room: `#_ro` is [`LOST`] and 16. That place follows.
    pub(super) missed: &'a str,
}

/// No chunk is to be had: this, and 16 for each record that was not made.
pub(super) const LOST: u32 = 0xc000_0000;
/// Nothing is recorded.
pub(super) const OFF: u32 = 0xffff_fff0;
/// Losses are counted up to here.
pub(super) const MOST_LOST: u32 = 0xffff_ffe0;

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

pub(super) fn registers(coder: &mut Coder<'_>) {
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
    let way = Way { write: &write, join: &join, missed: &missed };
    coder.room().say(coder, word, &way);
    coder.put(&missed);
    missing(coder);
    coder.put(&join);
    // Who ends needs no room any more.
    if word >> 28 != WAY_TO_END {
        // If the leader found no room, all of them have lost it.
        coder.line("mov.u32 %#_cur, %#_ro;");
        coder.line("brev.b32 %#_rx, %#_rd;");
        coder.line("clz.b32 %#_rx, %#_rx;");
        coder.line("shfl.sync.idx.b32 %#_ry, %#_ro, %#_rx, 31, %#_rd;");
        coder.line(&format!("setp.ge.u32 %#_rp, %#_ry, {LOST:#x};"));
        coder.line(&format!("@%#_rp mov.u32 %#_cur, {LOST:#x};"));
    }
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

pub(super) fn pool(coder: &mut Coder<'_>) {
    let (space, name) = coder.base;
    coder.line(&format!("ld.{space}.u64 %#_rb, [{name}];"));
}

/// Writes at `#_ra` who a leader is that begins to record at `#_rk`: the first 64 bytes of a chunk. `#_rc` is where its chunk
/// before this one ended, `#_rn` the kernel's number, `#_rs` since when.
pub(super) fn head(coder: &mut Coder<'_>) {
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
    coder.line("mad.lo.u32 %#_ru, %#_rv, 65536, %#_ru;");
    coder.line("st.global.v4.u32 [%#_ra+32], {%#_ry, %#_rx, %#_ru, %#_rs};");
    triple(coder, "ntid");
    coder.line("mov.u32 %#_ru, %#_ry;");
    coder.line("mov.u32 %#_rv, %#_rx;");
    triple(coder, "nctaid");
    coder.line("st.global.v4.u32 [%#_ra+48], {%#_ru, %#_rv, %#_ry, %#_rx};");
}

/// Lanes remember the counter of the multiprocessor on which they begin: if they are moved, they go on with it.
pub(super) fn begin_sm(coder: &mut Coder<'_>) {
    coder.line("mov.u32 %#_v, 1;");
    coder.line(&format!("@!%#_q ld.global.u32 %#_v, [%#_b+{COUNT}];"));
    coder.line("mov.u32 %#_u, %smid;");
    coder.line("rem.u32 %#_sm, %#_u, %#_v;");
}

/// There is no room any more for the record at `#_rk`: says so (`#_rh` is 1) in the pool at `#_rb`, and where the host sees it.
pub(super) fn full(coder: &mut Coder<'_>) {
    if !coder.paths {
        since(coder);
    }
    // Once: a write to the host's memory for each warp that finds no room would take longer than many a kernel.
    coder.line(&format!("ld.volatile.global.u32 %#_rx, [%#_rb+{FULL}];"));
    coder.line("setp.eq.u32 %#_rp, %#_rx, 0;");
    coder.line(&format!("@%#_rp st.volatile.global.u32 [%#_rb+{FULL}], %#_rh;"));
    coder.line(&format!("ld.global.u64 %#_ra, [%#_rb+{HOST_FULL}];"));
    coder.line("setp.ne.and.u64 %#_rp, %#_ra, 0, %#_rp;");
    coder.line("@%#_rp st.volatile.global.u32 [%#_ra], %#_rh;");
    coder.line(&format!("mov.u32 %#_ro, {:#x};", LOST + 16));
}

/// Notes since when records of this multiprocessor are lost: lanes of this leader will be in records of others that have room,
/// and what these have from here on has holes. In mode paths no other one has what a lane did before.
fn since(coder: &mut Coder<'_>) {
    coder.line("mov.u64 %#_re, %clock64;");
    coder.line("cvt.u32.u64 %#_rx, %#_re;");
    coder.line("sub.u32 %#_rx, %#_rx, %#_rk;");
    coder.line("cvt.u64.u32 %#_rf, %#_rx;");
    coder.line("sub.u64 %#_re, %#_re, %#_rf;");
    coder.line("not.b64 %#_re, %#_re;");
    coder.line("mov.u32 %#_rx, %smid;");
    coder.line(&format!("shr.u32 %#_ry, %#_rx, {};", COUNTERS.ilog2()));
    coder.line(&format!("min.u32 %#_ry, %#_ry, {};", (since_slot(u32::MAX) - since_slot(31)) / 8));
    coder.line(&format!("and.b32 %#_rx, %#_rx, {};", COUNTERS - 1));
    coder.line("shl.b32 %#_ry, %#_ry, 3;");
    coder.line(&format!("mad.lo.u32 %#_rx, %#_rx, {STRIDE}, %#_ry;"));
    coder.line("cvt.u64.u32 %#_ra, %#_rx;");
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
    coder.line(&format!("red.global.max.u64 [%#_ra+{}], %#_re;", since_slot(0)));
}

/// Three numbers, of 32, 16 and 16 bits, in `#_ry` and `#_rx`.
fn triple(coder: &mut Coder<'_>, of: &str) {
    coder.line(&format!("mov.u32 %#_rx, %{of}.z;"));
    coder.line(&format!("mov.u32 %#_ry, %{of}.y;"));
    coder.line("mad.lo.u32 %#_rx, %#_rx, 65536, %#_ry;");
    coder.line(&format!("mov.u32 %#_ry, %{of}.x;"));
}

//! Each record gets its place from a counter: strategies `global-cursor` and `sm-cursor`.
//!
//! Nothing of a leader's lies together, so a record says whose it is: behind its 16 bytes is where its leader's head lies, in
//! units of 64 bytes from the pool's begin, which is the leader's cursor. A head is what a chunk begins with, and a leader has
//! one, from a counter of heads beside that of records.

use hetrace_pool::{COUNT, PLACES, STRIDE, Size};

use super::Coder;
use super::room::{LOST, MOST_LOST, Room, Way, full, head, pool, registers};

/// No counter that is so large is looked at: numbers of places would begin anew.
const FAR: u32 = 1 << 29;

pub(super) struct Cursors;

impl Room for Cursors {
    fn ahead(&self, _: &mut Coder<'_>) {}

    fn record(&self, coder: &mut Coder<'_>, [first, second, third]: [&str; 3]) {
        let [go, counts, over, none] = [coder.label(), coder.label(), coder.label(), coder.label()];
        coder.line("{");
        registers(coder);
        coder.line(&format!("@!%#_l bra {go};"));
        coder.line("mov.u32 %#_ro, %#_cur;");
        coder.line(&format!("setp.ge.u32 %#_rp, %#_cur, {LOST:#x};"));
        coder.line(&format!("@%#_rp bra {counts};"));
        coder.line("mov.u32 %#_rk, %#_clk;");
        coder.line("mov.u32 %#_rs, %#_clk;");
        write(coder, [first, second, third, "%#_w3"], &none);
        coder.line(&format!("bra {over};"));
        coder.put(&counts);
        coder.line(&format!("setp.lt.u32 %#_rp, %#_ro, {MOST_LOST:#x};"));
        coder.line("@%#_rp add.u32 %#_ro, %#_ro, 16;");
        coder.line(&format!("bra {over};"));
        coder.put(&none);
        full(coder);
        coder.put(&over);
        coder.line("mov.u32 %#_cur, %#_ro;");
        coder.put(&go);
        coder.line("}");
    }

    fn say(&self, coder: &mut Coder<'_>, word: u32, way: &Way<'_>) {
        coder.line("mov.u32 %#_rs, %#_since;");
        coder.line(&format!("mov.u32 %#_ri, {word:#x};"));
        write(coder, ["%#_rk", "%#_rd", "%#_path", "%#_ri"], way.write);
        coder.line(&format!("bra {};", way.join));
        coder.put(way.write);
        full(coder);
    }
}

/// A leader with the cursor `#_ro`, 0 or its head, writes these words at `#_rk`; it goes on at `none` if there is no room.
fn write(coder: &mut Coder<'_>, words: [&str; 4], none: &str) {
    let there = coder.label();
    pool(coder);
    one(coder);
    coder.line("setp.ne.u32 %#_rp, %#_ro, 0;");
    coder.line(&format!("@%#_rp bra {there};"));
    take(coder, Size::Head, none);
    coder.line("mov.u32 %#_ro, %#_rx;");
    coder.line("mov.u32 %#_rc, 0;");
    coder.line(&format!("mov.u32 %#_rn, {};", coder.number));
    head(coder);
    one(coder);
    coder.put(&there);
    take(coder, Size::Slot, none);
    let [first, second, third, last] = words;
    coder.line(&format!("st.global.cs.v4.u32 [%#_ra], {{{first}, {second}, {third}, {last}}};"));
    coder.line("st.global.cs.u32 [%#_ra+16], %#_ro;");
}

/// One, in a way that is not seen: for a constant, code is made that first adds up what lanes add.
fn one(coder: &mut Coder<'_>) {
    coder.line("clz.b32 %#_rh, %#_rk;");
    coder.line("shr.u32 %#_rh, %#_rh, 6;");
    coder.line("add.u32 %#_rh, %#_rh, 1;");
}

/// Takes one of these from the counter: `#_ra` is its address, and `#_rx` that in units of its size from the pool's begin.
/// Rows of places, one for each counter, have records and heads in turn.
fn take(coder: &mut Coder<'_>, size: Size, none: &str) {
    let strategy = coder.strategy;
    let (at, per_place) = (strategy.counter_at(size), size.per_place());
    if strategy.is_per_multiprocessor() {
        coder.line(&format!("mul.wide.u32 %#_ra, %#_sm, {STRIDE};"));
        coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
        coder.line(&format!("atom.global.add.u32 %#_rx, [%#_ra+{at}], %#_rh;"));
        coder.line(&format!("ld.global.u32 %#_ry, [%#_rb+{COUNT}];"));
    } else {
        coder.line(&format!("atom.global.add.u32 %#_rx, [%#_rb+{at}], %#_rh;"));
    }
    coder.line(&format!("ld.global.u32 %#_rv, [%#_rb+{PLACES}];"));
    coder.line(&format!("setp.lt.u32 %#_rp, %#_rx, {FAR};"));
    coder.line(&format!("shr.u32 %#_ru, %#_rx, {};", per_place.ilog2()));
    coder.line("shl.b32 %#_ru, %#_ru, 1;");
    if size == Size::Head {
        coder.line("add.u32 %#_ru, %#_ru, 1;");
    }
    if strategy.is_per_multiprocessor() {
        coder.line("mad.lo.u32 %#_ru, %#_ru, %#_ry, %#_sm;");
    }
    coder.line("setp.lt.and.u32 %#_rp, %#_ru, %#_rv, %#_rp;");
    coder.line(&format!("@!%#_rp bra {none};"));
    coder.line(&format!("and.b32 %#_rx, %#_rx, {};", per_place - 1));
    coder.line(&format!("mad.lo.u32 %#_rx, %#_ru, {per_place}, %#_rx;"));
    coder.line(&format!("add.u32 %#_rx, %#_rx, {};", strategy.header_bytes() / size.bytes()));
    coder.line(&format!("mul.wide.u32 %#_ra, %#_rx, {};", size.bytes()));
    coder.line("add.u64 %#_ra, %#_ra, %#_rb;");
}

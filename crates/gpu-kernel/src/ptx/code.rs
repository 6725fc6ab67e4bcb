//! What a twin executes to record.
//!
//! Each lane has a cursor: where its next record goes, in units of 16 bytes from the pool's begin. Of lanes that come to a
//! site together the lowest writes, into its own chunk, so no record needs an atomic operation and no lane waits for one
//! of another group. A chunk may be full where the cursor's lower four bits are zero, as they are at the beginning: then
//! [`chunks`] has the leader take the next chunk of the pool. Where there is none it counts in the same register what
//! it did not record. That is the default; how else a leader can get room is in [`room`].
//!
//! ```text
//!  cursor  0x00000000              no chunk yet
//!          0x00000104…0x7fffffff   unit; the lower four bits are 0: the chunk may be full
//!          0x80000000…0xbfffffff   a first chunk that was asked for, and is not begun yet
//!          0xc0000000…0xffffffe0   no room: 16 × the records that were not made
//!          0xfffffff0              off: nothing is recorded
//! ```
//! No lane leaves this code other than at its end, and what all lanes of a group execute together is executed before the
//! leader goes its own way: the mask, the clock. So lanes that were together are so behind it, by the shape of the code.

mod chunks;
mod cursors;
mod room;

use std::fmt::Write;

use chunks::Chunks;
use cursors::Cursors;
use hetrace_pool::{FULL, Strategy};
use room::{LOST, OFF, Room, begin_sm, lost, say};

/// Passes that are added up before one is recorded again: shows when loops that run for long were where.
const PASSES: u32 = 65_535;

/// Kinds of records.
pub(super) const PASS: u32 = 1;
const SUM: u32 = 2;
const BEGIN: u32 = 3;
const END: u32 = 4;
const WAY: u32 = 5;
const WAY_TO_END: u32 = 6;

/// Returns the last word of a record.
pub(super) fn word(kind: u32, site: usize, case: usize) -> u32 {
    let number = u32::try_from(site + 1).unwrap_or(0xffff) & 0xffff;
    kind << 28 | (u32::try_from(case).unwrap_or(0) & 0xfff) << 16 | number
}

/// A predicate: its register, and whether it is negated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Predicate {
    pub(super) register: String,
    pub(super) negated: bool,
}

impl Predicate {
    /// As a guard or an operand.
    pub(super) fn text(&self) -> String {
        format!("{}{}", if self.negated { "!" } else { "" }, self.register)
    }

    pub(super) fn not(&self) -> Self {
        Self { register: self.register.clone(), negated: !self.negated }
    }
}

/// How passes of a site are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summing {
    /// Passes in which all lanes stay in the loop, which they do by this case. Two registers: the group, how often.
    Stay(usize),
    /// Passes in which the same lanes go the same ways. Three registers: the group, who was chosen, how often.
    Ways,
}

impl Summing {
    /// Returns how many registers it takes.
    pub(super) fn registers(self) -> usize {
        match self {
            Summing::Stay(_) => 2,
            Summing::Ways => 3,
        }
    }
}

/// A site whose passes are added up, at a lane's end.
pub(super) struct Pending {
    pub(super) site: usize,
    pub(super) summing: Summing,
}

/// Writes code.
pub(super) struct Coder<'a> {
    /// What is written.
    pub(super) out: String,
    /// What all names begin with.
    pub(super) fresh: &'a str,
    /// The space in which the pool's address is, and its name there.
    pub(super) base: &'a (&'static str, String),
    /// The kernel's number.
    pub(super) number: u32,
    /// Labels so far.
    pub(super) labels: usize,
    /// Lanes keep which ways they went, and say so now and then, in place of a record of each choice.
    pub(super) paths: bool,
    /// How leaders get room.
    pub(super) strategy: Strategy,
}

/// How a twin begins.
pub(super) struct Entry<'a> {
    /// The body as it is, for thread blocks that do not record.
    pub(super) plain: Option<&'a str>,
    /// One thread block in so many records.
    pub(super) sample: u32,
}

impl Coder<'_> {
    /// Writes a line, in which `#` is what names begin with.
    pub(super) fn line(&mut self, line: &str) {
        self.out.push('\t');
        self.out.push_str(&line.replace('#', self.fresh));
        self.out.push('\n');
    }

    /// Writes a statement of the text as it is.
    pub(super) fn raw(&mut self, statement: &str) {
        self.out.push('\t');
        self.out.push_str(statement);
        self.out.push('\n');
    }

    /// Returns a label that there is not yet.
    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!("${}_{}", self.fresh, self.labels)
    }

    pub(super) fn put(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    /// Takes what was written.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// What a kernel begins with: registers, and whether it is to record at all.
    pub(super) fn begin(&mut self, summed: &[Pending], entry: &Entry<'_>) {
        self.line(".reg .b32 %#_cur;");
        for Pending { site, summing } in summed {
            self.line(&format!(".reg .b32 %#_g{site}, %#_n{site};"));
            if *summing == Summing::Ways {
                self.line(&format!(".reg .b32 %#_c{site};"));
            }
        }
        if self.paths {
            self.line(".reg .b32 %#_path, %#_since;");
        }
        if self.strategy.is_per_multiprocessor() {
            self.line(".reg .b32 %#_sm;");
        }
        self.open();
        self.look(entry);
        if self.strategy.is_per_multiprocessor() {
            begin_sm(self);
        }
        if self.paths {
            self.line("mov.u32 %#_since, %clock;");
            self.line("mov.u32 %#_path, 1;");
            self.room().ahead(self);
        }
        self.close();
        for Pending { site, summing } in summed {
            self.reset(*site);
            if *summing == Summing::Ways {
                self.line(&format!("mov.u32 %#_c{site}, 0;"));
            }
        }
        if !self.paths {
            self.record("%#_m", BEGIN << 28, |_| {});
        }
    }

    /// Whether there is a pool, and room in it, and this thread block is one that records: one look at the begin, behind
    /// which the body runs as it is. That a pool has just become full may be seen late.
    fn look(&mut self, entry: &Entry<'_>) {
        self.pool();
        self.line("setp.eq.u64 %#_q, %#_b, 0;");
        match entry.plain {
            Some(label) => {
                self.line(&format!("@%#_q bra.uni {label};"));
                self.line(&format!("ld.global.u32 %#_v, [%#_b+{FULL}];"));
                self.line("setp.ne.u32 %#_q, %#_v, 0;");
                self.line(&format!("@%#_q bra.uni {label};"));
                if entry.sample > 1 {
                    self.sampled(entry.sample);
                    self.line(&format!("@%#_q bra.uni {label};"));
                }
                self.line("setp.ne.u64 %#_q, %#_b, %#_b;");
                self.line("mov.u32 %#_cur, 0;");
            }
            None => {
                self.line("mov.u32 %#_v, 1;");
                self.line(&format!("@!%#_q ld.global.u32 %#_v, [%#_b+{FULL}];"));
                self.line("setp.ne.u32 %#_q, %#_v, 0;");
                self.line(&format!("selp.b32 %#_cur, {OFF:#x}, 0, %#_q;"));
            }
        }
    }

    /// Whether this thread block is none of those that record.
    fn sampled(&mut self, every: u32) {
        self.line("mov.u32 %#_v, %nctaid.y;");
        self.line("mov.u32 %#_x, %ctaid.z;");
        self.line("mov.u32 %#_y, %ctaid.y;");
        self.line("mad.lo.u32 %#_x, %#_x, %#_v, %#_y;");
        self.line("mov.u32 %#_v, %nctaid.x;");
        self.line("mov.u32 %#_y, %ctaid.x;");
        self.line("mad.lo.u32 %#_x, %#_x, %#_v, %#_y;");
        self.line(&format!("rem.u32 %#_x, %#_x, {every};"));
        self.line("setp.ne.u32 %#_q, %#_x, 0;");
    }

    /// Returns what the strategy executes.
    fn room(&self) -> &'static dyn Room {
        match self.strategy {
            Strategy::Chunks | Strategy::ChunksPerSm | Strategy::Padded => &Chunks,
            Strategy::GlobalCursor | Strategy::SmCursor => &Cursors,
        }
    }

    fn open(&mut self) {
        self.line("{");
        self.line(".reg .pred %#_l, %#_k, %#_q, %#_h, %#_r, %#_s;");
        self.line(".reg .b32 %#_m, %#_t, %#_d, %#_x, %#_y, %#_u, %#_v, %#_clk, %#_w0, %#_w1, %#_w2, %#_w3;");
        self.line(".reg .b64 %#_a, %#_b;");
    }

    fn close(&mut self) {
        self.line("}");
    }

    /// Lanes leave a loop: what they keep of a branch of it is over.
    pub(super) fn reset(&mut self, site: usize) {
        self.line(&format!("mov.u32 %#_g{site}, 0;"));
        self.line(&format!("mov.u32 %#_n{site}, 0;"));
    }

    /// A record of all lanes that are here; `masks` writes the code for the mask of those that are chosen.
    fn record(&mut self, chosen: &str, word: u32, masks: impl Fn(&mut Self)) {
        self.open();
        self.here();
        masks(self);
        self.leader("%#_m");
        self.store(["%#_clk", "%#_m", chosen], word);
        self.close();
    }

    /// A record at a place: an edge, a block.
    pub(super) fn place(&mut self, word: u32) {
        self.record("%#_m", word, |_| {});
    }

    /// A record of a choice.
    pub(super) fn branch(&mut self, chosen: &Predicate, word: u32) {
        self.record("%#_t", word, |coder| coder.ways(chosen));
    }

    /// A record of one way of a choice of many, for which `#_all` has who was there.
    pub(super) fn way(&mut self, word: u32) {
        self.open();
        self.here();
        self.leader("%#_m");
        // Lanes that came another time may have joined on the way.
        self.line("or.b32 %#_t, %#_all, %#_m;");
        self.store(["%#_clk", "%#_t", "%#_m"], word);
        self.close();
    }

    /// The mask of those who are here, and the time: before the leader goes its own way, so that they are all of one moment.
    fn here(&mut self) {
        self.line("activemask.b32 %#_m;");
        self.line("mov.u32 %#_clk, %clock;");
    }

    /// The mask of those who are chosen: a vote would wait for lanes, this only looks who executes it.
    fn ways(&mut self, chosen: &Predicate) {
        let (yes, no) = (chosen.text(), chosen.not().text());
        // A register that is written under predicates only would be kept from the kernel's begin.
        self.line("mov.u32 %#_t, 0;");
        self.line(&format!("@{yes} activemask.b32 %#_t;"));
        self.line(&format!("@{no} activemask.b32 %#_t;"));
        self.line(&format!("@{no} xor.b32 %#_t, %#_t, %#_m;"));
    }

    /// Whether this lane is the lowest of a mask.
    fn leader(&mut self, mask: &str) {
        self.line("mov.u32 %#_x, %lanemask_lt;");
        self.line(&format!("and.b32 %#_x, {mask}, %#_x;"));
        self.line("setp.eq.u32 %#_l, %#_x, 0;");
    }

    /// Lanes note which of two ways they take.
    pub(super) fn note(&mut self, chosen: &Predicate) {
        self.line("shl.b32 %#_path, %#_path, 1;");
        self.line(&format!("@{} add.u32 %#_path, %#_path, 1;", chosen.text()));
    }

    /// Lanes note which of many ways they take.
    pub(super) fn note_case(&mut self, case: usize, bits: u32) {
        self.line(&format!("shl.b32 %#_path, %#_path, {bits};"));
        self.line(&format!("add.u32 %#_path, %#_path, {case};"));
    }

    /// Lanes that have no room for so many ways more say which they went.
    pub(super) fn say(&mut self, site: usize, room: u32) {
        let on = self.label();
        self.line("{");
        self.line(".reg .pred %#_q;");
        self.line(&format!("setp.lt.u32 %#_q, %#_path, {:#x};", 1u64 << (32 - room)));
        self.line(&format!("@%#_q bra {on};"));
        say(self, word(WAY, site, 0));
        self.line("mov.u32 %#_path, 1;");
        self.put(&on);
        self.line("}");
    }

    /// A choice whose passes are added up.
    pub(super) fn summed(&mut self, site: usize, summing: Summing, chosen: &Predicate) {
        let done = self.label();
        self.open();
        self.line("activemask.b32 %#_m;");
        let stays = match summing {
            Summing::Stay(0) => chosen.text(),
            Summing::Stay(_) => chosen.not().text(),
            Summing::Ways => {
                self.ways(chosen);
                self.line(&format!("setp.eq.u32 %#_q, %#_c{site}, %#_t;"));
                "%#_q".replace('#', self.fresh)
            }
        };
        self.line(&format!("setp.eq.and.u32 %#_q, %#_g{site}, %#_m, {stays};"));
        self.line(&format!("setp.lt.and.u32 %#_q, %#_n{site}, {PASSES}, %#_q;"));
        // All are as before if those are who are.
        self.line("mov.u32 %#_d, 0;");
        self.line("@%#_q activemask.b32 %#_d;");
        self.line("setp.eq.and.u32 %#_q, %#_d, %#_m, %#_q;");
        self.line(&format!("@%#_q add.u32 %#_n{site}, %#_n{site}, 1;"));
        self.line(&format!("@%#_q bra {done};"));
        self.line("mov.u32 %#_clk, %clock;");
        if summing != Summing::Ways {
            self.ways(chosen);
        }
        self.classes(site);
        self.turn(site, summing);
        match summing {
            Summing::Stay(0) => self.line(&format!("mov.u32 %#_g{site}, %#_t;")),
            Summing::Stay(_) => self.line(&format!("xor.b32 %#_g{site}, %#_t, %#_m;")),
            Summing::Ways => {
                self.line(&format!("mov.u32 %#_g{site}, %#_m;"));
                self.line(&format!("mov.u32 %#_c{site}, %#_t;"));
            }
        }
        self.line(&format!("mov.u32 %#_n{site}, 0;"));
        self.put(&done);
        self.close();
    }

    /// Those of `#_m` with the same group have been together since its first pass, and have counted the same: `#_d` has them,
    /// `#_h` says that there is something to say, `#_l` that this lane is who says it.
    fn classes(&mut self, site: usize) {
        self.line(&format!("setp.ne.u32 %#_h, %#_n{site}, 0;"));
        self.line(&format!("selp.b32 %#_y, %#_g{site}, 0, %#_h;"));
        self.line("match.any.sync.b32 %#_d, %#_y, %#_m;");
        self.leader("%#_d");
        self.line("mov.pred %#_k, %#_l;");
    }

    /// How often, and then the pass: one place in the code for both, as it is long. The pass is recorded by each that had
    /// something to say, so that the time of a count is that of the record behind it.
    fn turn(&mut self, site: usize, summing: Summing) {
        let (again, over) = (self.label(), self.label());
        self.count(site, summing);
        self.line(&format!("@%#_h bra {again};"));
        self.pass(site);
        self.put(&again);
        self.write(["%#_w0", "%#_d", "%#_w2"]);
        self.line(&format!("@!%#_h bra {over};"));
        self.line("setp.ne.u32 %#_h, %#_x, %#_x;");
        self.line("mov.pred %#_l, %#_k;");
        self.pass(site);
        self.line(&format!("bra {again};"));
        self.put(&over);
    }

    fn count(&mut self, site: usize, summing: Summing) {
        self.line(&format!("mov.u32 %#_w0, %#_n{site};"));
        match summing {
            Summing::Stay(0) => self.line("mov.u32 %#_w2, %#_d;"),
            Summing::Stay(_) => self.line("mov.u32 %#_w2, 0;"),
            Summing::Ways => self.line(&format!("and.b32 %#_w2, %#_d, %#_c{site};")),
        }
        self.line(&format!("mov.u32 %#_w3, {:#x};", word(SUM, site, 0)));
    }

    fn pass(&mut self, site: usize) {
        self.line("mov.u32 %#_w0, %#_clk;");
        self.line("and.b32 %#_w2, %#_t, %#_d;");
        self.line(&format!("mov.u32 %#_w3, {:#x};", word(PASS, site, 0)));
    }

    /// Lanes end: what they have counted is said, by those who then say that they end.
    pub(super) fn end(&mut self, pending: &[&Pending]) {
        if self.paths {
            say(self, WAY_TO_END << 28);
            return;
        }
        self.open();
        self.here();
        self.line("setp.ne.u32 %#_s, %#_m, %#_m;");
        self.line("mov.pred %#_r, %#_s;");
        for Pending { site, summing } in pending {
            self.classes(*site);
            self.line("and.pred %#_l, %#_l, %#_h;");
            self.line("or.pred %#_r, %#_r, %#_l;");
            self.count(*site, *summing);
            self.write(["%#_w0", "%#_d", "%#_w2"]);
        }
        self.leader("%#_m");
        self.line("or.pred %#_l, %#_l, %#_r;");
        self.store(["%#_clk", "%#_m", "%#_m"], END << 28);
        // What found no room is counted in the cursor.
        let over = self.label();
        self.line(&format!("setp.lt.u32 %#_s, %#_cur, {LOST:#x};"));
        self.line(&format!("@%#_s bra {over};"));
        lost(self);
        self.put(&over);
        self.close();
    }

    /// Leaders write a record.
    fn store(&mut self, words: [&str; 3], last: u32) {
        self.line(&format!("mov.u32 %#_w3, {last:#x};"));
        self.write(words);
    }

    /// As [`Self::store`] with `#_w3`.
    fn write(&mut self, words: [&str; 3]) {
        self.room().record(self, words);
    }

    pub(super) fn pool(&mut self) {
        let (space, name) = self.base;
        self.line(&format!("ld.{space}.u64 %#_b, [{name}];"));
    }
}

//! What is held where, step by step.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use hetrace_model::Place;

use super::rows::{MemoryProcessRow, MemoryReleases, MemoryRow};
use super::sites::Sites;
use super::step::{Holder, Owner, Step, What, may_be_one};
use crate::hash::QuickMap;
use crate::owners::ApiIndex;
use crate::trace::Trace;

/// Allocations that are followed at a time.
const KEPT: usize = 1 << 20;
/// Contexts that a thread may push.
const DEPTH: usize = 1 << 10;
/// Processes of a row that are shown.
const PROCESSES: usize = 16;

/// The process, the API that alone has the address, if it is known, and the address or handle.
type Key = (i64, Option<ApiIndex>, u64);

/// An allocation.
#[derive(Clone, Debug)]
struct Block {
    bytes: u64,
    references: u64,
    /// None of a part of another one.
    account: Option<usize>,
    owner: Owner,
    /// An API below its own holds it, too.
    below: bool,
}

/// A sum that goes up and down.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    now: u64,
    peak: u64,
    peak_time: u64,
}

impl Level {
    fn rise(&mut self, bytes: u64, time: u64) {
        self.now = self.now.saturating_add(bytes);
        if self.now > self.peak {
            (self.peak, self.peak_time) = (self.now, time);
        }
    }

    fn fall(&mut self, bytes: u64) {
        self.now = self.now.saturating_sub(bytes);
    }
}

/// What one process has of an account.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    level: Level,
    allocations: u64,
    live: u64,
}

/// Memory of one kind of one device.
#[derive(Clone, Debug)]
struct Account {
    site: usize,
    place: Place,
    level: Level,
    allocated: u64,
    unsized_allocations: u64,
    failed: u64,
    /// By process.
    shares: BTreeMap<i64, Share>,
}

/// What is held where.
#[derive(Debug)]
pub struct Ledger<'t> {
    sites: Sites<'t>,
    accounts: Vec<Account>,
    blocks: QuickMap<Key, Block>,
    /// APIs that alone have the addresses of some steps.
    apis: Vec<ApiIndex>,
    /// What is current, by thread, of each API; what was pushed last stands last.
    current: QuickMap<(i64, i64), Vec<Owner>>,
    /// The process that was met first, while it is the only one.
    only: Option<i64>,
    /// When processes were heard of last, the earliest last.
    ends: Option<Vec<(u64, i64)>>,
    releases: MemoryReleases,
    /// Where memory is that an API has released and the one below it, of which it had it, has not: it is kept to be
    /// handed out again.
    pooled: QuickMap<(i64, u64), ()>,
    /// What the last step changed: accounts, and of which process; none if nobody wants to know.
    touched: Option<Vec<(usize, i64)>>,
}

/// What a process holds from now on.
#[derive(Clone, Debug)]
pub struct Change {
    /// The process.
    pub pid: i64,
    /// The number of what is distinguished: kinds of memory by device.
    pub account: usize,
    /// The kind of memory.
    pub place: Place,
    /// How much it holds.
    pub bytes: u64,
}

impl<'t> Ledger<'t> {
    /// One that reports what each step changes. What ended processes held is not taken back there.
    pub(super) fn watched(trace: &'t Trace) -> Self {
        Self { touched: Some(Vec::new()), ..Self::new(trace) }
    }

    /// What has changed since this was asked last.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let Some(touched) = &mut self.touched else { return Vec::new() };
        let mut touched = std::mem::take(touched);
        touched.sort_unstable();
        touched.dedup();
        let change = |(number, pid): (usize, i64)| {
            let account = self.accounts.get(number)?;
            let bytes = account.shares.get(&pid)?.level.now;
            Some(Change { pid, account: number, place: account.place, bytes })
        };
        touched.into_iter().filter_map(change).collect()
    }

    /// Name and identity of the device that an account is of.
    pub fn site(&self, account: usize) -> (String, String) {
        self.accounts.get(account).map_or_else(Default::default, |account| self.sites.name(account.site))
    }

    /// An empty one.
    pub fn new(trace: &'t Trace) -> Self {
        Self {
            sites: Sites::new(trace),
            accounts: Vec::new(),
            blocks: QuickMap::default(),
            apis: Vec::new(),
            current: QuickMap::default(),
            only: None,
            ends: None,
            releases: MemoryReleases::default(),
            pooled: QuickMap::default(),
            touched: None,
        }
    }

    /// The next thing that happened.
    pub(super) fn step(&mut self, step: &Step) {
        let (pid, time) = (step.pid, step.time);
        if self.touched.is_none() && *self.only.get_or_insert(pid) != pid && self.ends.is_none() {
            self.ends = Some(self.sites.ends());
        }
        self.end_processes(time);
        if let Some(api) = step.api
            && !self.apis.contains(&api)
        {
            self.apis.push(api);
        }
        match step.what {
            What::Made { address, bytes, place, holder } => {
                let owner = self.owner(step, holder);
                self.made(step, address, bytes, place, owner);
            }
            What::Part { address } => {
                let (key, owner) = ((pid, step.api, address), Owner { api: step.api, holder: None });
                self.replace(key);
                self.keep(key, Block { bytes: 0, references: 1, account: None, owner, below: false });
            }
            What::Below { address, held } => {
                let key = self.known((pid, step.api, address));
                if let Some(block) = key.and_then(|key| self.blocks.get_mut(&key)) {
                    block.below = held;
                }
            }
            What::Failed { place, holder } => {
                let owner = self.owner(step, holder);
                let account = self.account(pid, place, owner);
                self.accounts[account].failed += 1;
            }
            What::Retained { address } => {
                let key = self.known((pid, step.api, address));
                if let Some(block) = key.and_then(|key| self.blocks.get_mut(&key)) {
                    block.references = block.references.saturating_add(1);
                }
            }
            What::Released { address, at_once } => self.released((pid, step.api, address), at_once),
            What::Reset { holder } => {
                let owner = self.owner(step, holder);
                self.reset(pid, owner);
            }
            What::Context { context, ref devices } => self.sites.context(pid, step.api, context, devices),
            What::Set(now) => self.set_current(step, true, Some(now)),
            What::Pushed(now) => self.set_current(step, false, Some(now)),
            What::Popped => self.set_current(step, true, None),
        }
    }

    /// What memory belongs to: what the call names, or else what is current for calls of its API.
    fn owner(&self, step: &Step, named: Option<Holder>) -> Owner {
        let unnamed = Owner { api: step.api, holder: None };
        if named.is_some() {
            return Owner { holder: named, ..unnamed };
        }
        let current = self.current.get(&(step.pid, step.tid));
        current.and_then(|all| all.get(last_of(all, step.api)?).copied()).unwrap_or(unnamed)
    }

    /// Takes off what is current for calls of the step's API, and puts on what is from now on.
    fn set_current(&mut self, step: &Step, take_off: bool, now: Option<Option<Holder>>) {
        let stack = self.current.entry((step.pid, step.tid)).or_default();
        if take_off && let Some(at) = last_of(stack, step.api) {
            stack.remove(at);
        }
        if let Some(holder) = now
            && stack.len() < DEPTH
        {
            stack.push(Owner { api: step.api, holder });
        }
    }

    fn account(&mut self, pid: i64, place: Place, owner: Owner) -> usize {
        let site = match place {
            Place::Host => self.sites.host(),
            _ => self.sites.of(pid, owner),
        };
        let known = self.accounts.iter().position(|a| a.site == site && a.place == place);
        known.unwrap_or_else(|| {
            self.accounts.push(Account {
                site,
                place,
                level: Level::default(),
                allocated: 0,
                unsized_allocations: 0,
                failed: 0,
                shares: BTreeMap::new(),
            });
            self.accounts.len() - 1
        })
    }

    fn made(&mut self, step: &Step, address: u64, bytes: Option<u64>, place: Place, owner: Owner) {
        let key = (step.pid, step.api, address);
        self.replace(key);
        let account = self.account(step.pid, place, owner);
        let size = bytes.unwrap_or(0);
        let block = Block { bytes: size, references: 1, account: Some(account), owner, below: false };
        if !self.keep(key, block) {
            return;
        }
        self.touched.as_mut().into_iter().for_each(|touched| touched.push((account, step.pid)));
        let Some(account) = self.accounts.get_mut(account) else { return };
        account.level.rise(size, step.time);
        account.allocated = account.allocated.saturating_add(size);
        account.unsized_allocations += u64::from(bytes.is_none());
        let share = account.shares.entry(step.pid).or_default();
        share.level.rise(size, step.time);
        share.allocations += 1;
        share.live += 1;
    }

    fn keep(&mut self, key: Key, block: Block) -> bool {
        let fits = self.blocks.len() < KEPT;
        match fits {
            true => drop(self.blocks.insert(key, block)),
            false => self.releases.passed_over += 1,
        }
        fits
    }

    /// An address is handed out: what was there has ended, though nobody saw how.
    fn replace(&mut self, key: Key) {
        if let Some(block) = self.blocks.remove(&key) {
            self.releases.replaced += u64::from(block.account.is_some());
            self.gone(key.0, &block);
        }
    }

    /// Where the allocation is that a call means: one of its API, or else one of which the API is not known. A
    /// call that may mean one of any API means the only one.
    fn known(&self, key: Key) -> Option<Key> {
        if self.blocks.contains_key(&key) {
            return Some(key);
        }
        let (pid, api, address) = key;
        let of = |api| Some((pid, api, address)).filter(|key| self.blocks.contains_key(key));
        if api.is_some() {
            return of(None);
        }
        let mut all = self.apis.iter().filter_map(|api| of(Some(*api)));
        all.next().filter(|_| all.next().is_none())
    }

    fn released(&mut self, released: Key, at_once: bool) {
        self.releases.releases += 1;
        let Some(key) = self.known(released) else {
            let (pid, _, address) = released;
            self.releases.unknown += u64::from(self.pooled.remove(&(pid, address)).is_none());
            return;
        };
        let Entry::Occupied(mut block) = self.blocks.entry(key) else { return };
        let references = block.get().references.saturating_sub(1);
        block.get_mut().references = references;
        if at_once || references == 0 {
            let block = block.remove();
            if block.below && self.pooled.len() < KEPT {
                self.pooled.insert((key.0, key.2), ());
            }
            self.gone(key.0, &block);
        }
    }

    fn gone(&mut self, pid: i64, block: &Block) {
        let Some(number) = block.account else { return };
        self.touched.as_mut().into_iter().for_each(|touched| touched.push((number, pid)));
        if let Some(account) = self.accounts.get_mut(number) {
            account.level.fall(block.bytes);
            let share = account.shares.entry(pid).or_default();
            share.level.fall(block.bytes);
            share.live = share.live.saturating_sub(1);
        }
    }

    fn reset(&mut self, pid: i64, target: Owner) {
        let site = target.holder.is_some().then(|| self.sites.of(pid, target));
        let accounts = &self.accounts;
        let belongs = |block: &Block| match (target.holder, block.owner.holder) {
            (Some(Holder::Context(a)), Some(Holder::Context(b))) => a == b,
            (Some(Holder::Device(a)), Some(Holder::Device(b))) => a == b,
            (Some(_), Some(_)) => block.account.and_then(|a| accounts.get(a)).map(|a| a.site) == site,
            _ => true,
        };
        let ended = self.blocks.extract_if(|key, block| {
            key.0 == pid && may_be_one(block.owner.api, target.api) && belongs(block)
        });
        let ended: Vec<Block> = ended.map(|(_, block)| block).collect();
        ended.iter().for_each(|block| self.gone(pid, block));
    }

    /// What processes held that were last heard of before is free again.
    fn end_processes(&mut self, time: u64) {
        while let Some((_, pid)) = self.ends.as_mut().and_then(|ends| ends.pop_if(|(end, _)| *end < time)) {
            self.blocks.retain(|key, _| key.0 != pid);
            for account in &mut self.accounts {
                if let Some(share) = account.shares.get(&pid) {
                    account.level.fall(share.level.now);
                }
            }
        }
    }

    /// What releases there were.
    pub fn releases(&self) -> MemoryReleases {
        self.releases.clone()
    }

    /// The table; times are ns since `first`.
    pub fn rows(&self, first: u64, host: &str) -> Vec<MemoryRow> {
        self.accounts.iter().map(|account| self.row(account, first, host)).collect()
    }

    fn row(&self, account: &Account, first: u64, host: &str) -> MemoryRow {
        let since = |level: &Level| (level.peak > 0).then(|| level.peak_time.saturating_sub(first));
        let mut processes: Vec<MemoryProcessRow> = account
            .shares
            .iter()
            .map(|(pid, share)| MemoryProcessRow {
                pid: *pid,
                peak_bytes: share.level.peak,
                peak_ns: since(&share.level),
                allocations: share.allocations,
                live_bytes: share.level.now,
                live_allocations: share.live,
            })
            .collect();
        let sum = |of: fn(&MemoryProcessRow) -> u64| processes.iter().map(of).fold(0, u64::saturating_add);
        let (allocations, live_bytes, live_allocations) =
            (sum(|p| p.allocations), sum(|p| p.live_bytes), sum(|p| p.live_allocations));
        let all = processes.len() as u64;
        processes.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then(a.pid.cmp(&b.pid)));
        processes.truncate(PROCESSES);
        let (device, uuid) = self.sites.name(account.site);
        MemoryRow {
            device,
            uuid,
            host: host.to_owned(),
            kind: match account.place {
                Place::Device => "device",
                Place::Host => "host",
                Place::Managed => "managed",
                Place::Image => "image",
            }
            .to_owned(),
            peak_bytes: account.level.peak,
            peak_ns: since(&account.level),
            allocations,
            allocated_bytes: account.allocated,
            unsized_allocations: account.unsized_allocations,
            failed: account.failed,
            live_bytes,
            live_allocations,
            process_count: all,
            processes,
        }
    }
}

/// The place of the last one of an API, or else of the last one that may be of it.
fn last_of(all: &[Owner], api: Option<ApiIndex>) -> Option<usize> {
    let own = all.iter().rposition(|owner| owner.api == api);
    own.or_else(|| all.iter().rposition(|owner| may_be_one(owner.api, api)))
}

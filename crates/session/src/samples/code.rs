//! Files whose code is executed: what they are, where their code is, and their unwind tables.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    ParsedEhFrameHdr, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};
use hetrace_format::Handle;
use hetrace_format::define::Module;
use hetrace_os::perf::sampled::Map;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ReadCache};

use crate::hash;
use crate::symbols::file;

/// The bytes of a table.
pub type Bytes<'b> = EndianSlice<'b, LittleEndian>;

/// The kernel's code in each process; the launcher has the same.
const VDSO: &[u8] = b"[vdso]";
/// More rows are not kept: of each address that was on a stack there is one.
const MOST_ROWS: usize = 1 << 18;

/// What a table says of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// How to come to the caller's frame.
    Frame {
        /// Its canonical frame address.
        cfa: CfaRule<usize>,
        /// What became of its registers, by DWARF's numbers.
        registers: Vec<(Register, RegisterRule<usize>)>,
        /// The kernel made it, to call a signal handler.
        signal: bool,
    },
    /// There is no table for it.
    None,
}

/// A program or library.
#[derive(Debug)]
pub struct Code {
    /// What it is, for the trace.
    pub module: Arc<Module>,
    /// Offsets in the file, and what is added to them for an address.
    segments: Vec<(Range<u64>, u64)>,
    frames: Vec<u8>,
    index: Vec<u8>,
    /// Where these two are.
    bases: BaseAddresses,
    rows: HashMap<u64, Arc<Row>>,
}

impl Code {
    /// Opens what is mapped: nothing of another file that lies there by now.
    pub fn open(map: &Map) -> Self {
        let path = String::from_utf8_lossy(&map.path).into_owned();
        let read = if map.path == VDSO { Read::vdso() } else { Read::file(Path::new(&path)) };
        let reported = file::hex(&map.build_id);
        // What the kernel says of what is mapped holds; old kernels say nothing.
        let read = read.filter(|read| reported.is_empty() || reported == read.build_id).unwrap_or_default();
        let build_id = if reported.is_empty() { read.build_id } else { reported };
        let identity = if build_id.is_empty() { &path } else { &build_id };
        let module = Handle(hash::text(identity).max(1));
        let [frames, index] = [read.frames, read.index];
        let bases = BaseAddresses::default().set_eh_frame(frames.0).set_eh_frame_hdr(index.0);
        Self {
            module: Arc::new(Module { module, base: Handle(0), bytes: 0, build_id, path }),
            segments: read.segments,
            frames: frames.1,
            index: index.1,
            bases,
            rows: HashMap::new(),
        }
    }

    /// Returns the address that its file has for a place in it; the place itself, where there is nothing to know it by.
    pub fn address(&self, offset: u64) -> u64 {
        let segment = self.segments.iter().find(|(place, _)| place.contains(&offset));
        segment.map_or(offset, |(_, add)| offset.wrapping_add(*add))
    }

    /// Returns what the table says of an address.
    pub fn row(&mut self, address: u64) -> Arc<Row> {
        if let Some(row) = self.rows.get(&address) {
            return Arc::clone(row);
        }
        if self.rows.len() >= MOST_ROWS {
            self.rows.clear();
        }
        let row = Arc::new(self.read(address).unwrap_or(Row::None));
        self.rows.insert(address, Arc::clone(&row));
        row
    }

    /// Whether there is a table of unwinding at all.
    #[cfg(test)]
    fn has_table(&self) -> bool {
        !self.frames.is_empty()
    }

    fn read(&self, address: u64) -> Option<Row> {
        let (table, mut context) = (self.table(), UnwindContext::new());
        let hdr = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8);
        let hdr: Option<ParsedEhFrameHdr<Bytes<'_>>> = hdr.ok();
        let fde = match hdr.as_ref().filter(|hdr| hdr.table().is_some()) {
            Some(hdr) => self.indexed(hdr, &table, address)?,
            None => table.fde_for_address(&self.bases, address, EhFrame::cie_from_offset).ok()?,
        };
        let row = fde.unwind_info_for_address(&table, &self.bases, &mut context, address).ok()?;
        Some(Row::Frame {
            cfa: row.cfa().clone(),
            registers: row.registers().cloned().collect(),
            signal: fde.is_signal_trampoline(),
        })
    }

    /// Finds an address by the index. As `EhHdrTable::fde_for_address`, which takes for granted that what the index names lies
    /// behind the begin of the table: in a damaged file it does not.
    fn indexed<'c>(
        &self,
        hdr: &ParsedEhFrameHdr<Bytes<'c>>,
        table: &EhFrame<Bytes<'c>>,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Bytes<'c>>> {
        let index = hdr.table()?;
        let place = index.lookup(address, &self.bases).ok()?;
        place.direct().ok()?.checked_sub(hdr.eh_frame_ptr().direct().ok()?)?;
        let offset = index.pointer_to_offset(place).ok()?;
        let fde = table.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
        fde.contains(address).then_some(fde)
    }

    fn table(&self) -> EhFrame<Bytes<'_>> {
        EhFrame::new(&self.frames, LittleEndian)
    }

    /// Returns the bytes of an expression in the table.
    pub fn expression(&self, expression: &UnwindExpression<usize>) -> Option<Bytes<'_>> {
        expression.get(&self.table()).ok().map(|found| found.0)
    }
}

/// What is read of a file.
#[derive(Debug, Default)]
struct Read {
    build_id: String,
    segments: Vec<(Range<u64>, u64)>,
    /// `.eh_frame` and `.eh_frame_hdr` with their addresses.
    frames: (u64, Vec<u8>),
    index: (u64, Vec<u8>),
}

impl Read {
    fn file(path: &Path) -> Option<Self> {
        Self::of(&ReadCache::new(file::opened(path)?))
    }

    /// Reads the launcher's own.
    fn vdso() -> Option<Self> {
        use std::os::unix::fs::FileExt;
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (first, end) = line.split_once(' ')?.0.split_once('-')?;
        let [first, end] = [first, end].map(|text| u64::from_str_radix(text, 16).ok());
        let (first, end) = (first?, end?);
        let mut bytes = vec![0; usize::try_from(end.checked_sub(first)?).ok()?];
        fs::File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, first).ok()?;
        Self::of(&*bytes)
    }

    fn of<'d, R: object::ReadRef<'d>>(data: R) -> Option<Self> {
        let elf = ElfFile64::<object::Endianness, _>::parse(data).ok()?;
        let code = file::code(&elf).map(|code| {
            let add = code.address.wrapping_sub(code.stored.start);
            (code.stored, add)
        });
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        let id = elf.build_id().ok().flatten().unwrap_or_default();
        Some(Self {
            build_id: file::hex(id),
            segments: code.collect(),
            frames: section(".eh_frame").unwrap_or_default(),
            index: section(".eh_frame_hdr").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(path: &[u8], build_id: Vec<u8>) -> Map {
        Map { address: 0, length: 0, offset: 0, build_id, path: path.into() }
    }

    #[test]
    fn this_program_and_the_kernels_code_have_tables() {
        let path = std::env::current_exe().expect("a path");
        for path in [path.as_os_str().as_encoded_bytes(), VDSO] {
            let mut code = Code::open(&map(path, vec![]));
            assert!(code.has_table(), "{path:?}");
            let (place, add) = code.segments.last().cloned().expect("code");
            let rows = (place.start..place.end).step_by(64).map(|at| code.row(at + add));
            assert!(rows.take(4096).any(|row| *row != Row::None));
            assert_eq!(*code.row(u64::MAX), Row::None);
        }
    }

    #[test]
    fn another_file_says_nothing() {
        let path = std::env::current_exe().expect("a path");
        let code = Code::open(&map(path.as_os_str().as_encoded_bytes(), vec![1, 2, 3]));
        assert!(!code.has_table());
        assert_eq!(code.module.build_id, "010203");
        assert_eq!(code.address(77), 77);
        assert!(!Code::open(&map(b"/dev/null", vec![])).has_table());
    }
}

//! Sizes that take knowledge of the API; named in `semantics.toml`.
//!
//! A newer runtime may know attributes that are not listed here; of these nothing is read.

pub use hetrace_interpose::measure::if_at_most;

/// Bytes of the answer to a `hsa_system_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn system_info_bytes(attribute: usize) -> usize {
    match attribute {
        0x201..=0x206 => 1,
        0 | 1 | 0x207 | 0x208 => 2,
        5 | 6 => 4,
        2..=4 => 8,
        7 => 128,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_agent_info_t`, and those of AMD and of images; 0 for one that is not known, and for text, whose length another says.
pub fn agent_info_bytes(attribute: usize) -> usize {
    match attribute {
        24 | 0xa010 | 0xa013 => 1,
        21 | 22 => 2,
        2..=6
        | 8
        | 10..=17
        | 23
        | 0xa000..=0xa008
        | 0xa00a..=0xa00d
        | 0xa00f
        | 0xa012
        | 0xa014
        | 0xa107..=0xa10b
        | 0xa110..=0xa112 => 4,
        7 => 6,
        19 | 0x3000..=0x3002 | 0x3008..=0x300c | 0xa015 | 0xa016 | 0xa113..=0xa117 => 8,
        9 => 12,
        18 | 0x3003..=0x3006 | 0xa00e => 16,
        0xa011 => 21,
        0x3007 => 24,
        0xa118 => 32,
        0 | 1 | 0xa009 => 64,
        20 => 128,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_cache_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn cache_info_bytes(attribute: usize) -> usize {
    match attribute {
        2 => 1,
        0 | 3 => 4,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_region_info_t`, and those of AMD; 0 for one that is not known, and for text, whose length another says.
pub fn region_info_bytes(attribute: usize) -> usize {
    match attribute {
        5 | 0xa000 => 1,
        0 | 1 | 8 | 0xa002 | 0xa003 => 4,
        2 | 4 | 6 | 7 | 0xa001 => 8,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_isa_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn isa_info_bytes(attribute: usize) -> usize {
    match attribute {
        9 => 1,
        5 | 6 => 2,
        7 | 8 => 3,
        0 | 2..=4 | 13 | 17 => 4,
        12 => 6,
        16 => 8,
        14 => 12,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_executable_symbol_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn executable_symbol_info_bytes(attribute: usize) -> usize {
    match attribute {
        10 | 15 | 17 => 1,
        0 | 1 | 3 | 5..=9 | 11..=14 | 16 | 18 => 4,
        20..=23 => 8,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_code_symbol_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn code_symbol_info_bytes(attribute: usize) -> usize {
    match attribute {
        10 | 15 | 17 => 1,
        0 | 1 | 3 | 5..=9 | 11..=14 | 16 | 18 => 4,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_code_object_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn code_object_info_bytes(attribute: usize) -> usize {
    match attribute {
        1 | 3..=5 => 4,
        2 => 8,
        0 => 64,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_amd_memory_pool_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn pool_info_bytes(attribute: usize) -> usize {
    match attribute {
        5 | 15 => 1,
        0 | 1 | 17 => 4,
        2 | 6 | 7 | 16 | 18 => 8,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_amd_agent_memory_pool_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn agent_pool_info_bytes(attribute: usize) -> usize {
    match attribute {
        0 | 1 => 4,
        _ => 0,
    }
}

/// Bytes of the answer to a `hsa_ven_amd_loader_loaded_code_object_info_t`; 0 for one that is not known, and for text, whose length another says.
pub fn loaded_info_bytes(attribute: usize) -> usize {
    match attribute {
        2 | 4 | 7 | 11 => 4,
        1 | 3 | 5 | 6 | 8..=10 => 8,
        _ => 0,
    }
}

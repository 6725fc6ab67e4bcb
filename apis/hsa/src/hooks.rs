//! Functions that hand out tables of other functions. Named `hook` in `semantics.toml`.
//!
//! A table has one address behind the other, of the functions of an extension. What is in it is not what the runtime
//! exports under these names, and of some extensions it exports nothing.

use std::ffi::CStr;

use crate::entry::LIBRARY;
use crate::generated::prelude::P;
use crate::generated::real;

/// The functions of an extension of this number, in the order of its table.
fn functions(extension: u64) -> &'static [&'static CStr] {
    match extension {
        0 => &FINALIZER,
        1 => &IMAGES,
        0x201 => &LOADER,
        0x203 => &PC_SAMPLING,
        _ => &[],
    }
}

const FINALIZER: [&CStr; 6] = [
    c"hsa_ext_program_create",
    c"hsa_ext_program_destroy",
    c"hsa_ext_program_add_module",
    c"hsa_ext_program_iterate_modules",
    c"hsa_ext_program_get_info",
    c"hsa_ext_program_finalize",
];

const IMAGES: [&CStr; 14] = [
    c"hsa_ext_image_get_capability",
    c"hsa_ext_image_data_get_info",
    c"hsa_ext_image_create",
    c"hsa_ext_image_destroy",
    c"hsa_ext_image_copy",
    c"hsa_ext_image_import",
    c"hsa_ext_image_export",
    c"hsa_ext_image_clear",
    c"hsa_ext_sampler_create",
    c"hsa_ext_sampler_destroy",
    c"hsa_ext_image_get_capability_with_layout",
    c"hsa_ext_image_data_get_info_with_layout",
    c"hsa_ext_image_create_with_layout",
    c"hsa_ext_sampler_create_v2",
];
/// Those that the table of version 1.0 has.
const IMAGES_1_0: usize = 10;

const LOADER: [&CStr; 7] = [
    c"hsa_ven_amd_loader_query_host_address",
    c"hsa_ven_amd_loader_query_segment_descriptors",
    c"hsa_ven_amd_loader_query_executable",
    c"hsa_ven_amd_loader_executable_iterate_loaded_code_objects",
    c"hsa_ven_amd_loader_loaded_code_object_get_info",
    c"hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size",
    c"hsa_ven_amd_loader_iterate_executables",
];

const PC_SAMPLING: [&CStr; 7] = [
    c"hsa_ven_amd_pcs_iterate_configuration",
    c"hsa_ven_amd_pcs_create",
    c"hsa_ven_amd_pcs_create_from_id",
    c"hsa_ven_amd_pcs_destroy",
    c"hsa_ven_amd_pcs_start",
    c"hsa_ven_amd_pcs_stop",
    c"hsa_ven_amd_pcs_flush",
];

/// How many functions a table has that was asked for by this minor version.
fn entries(extension: u64, minor: u64) -> usize {
    match (extension, minor) {
        (1, 0) => IMAGES_1_0,
        (0x201, 0) => 3,
        (0x201, 1) => 5,
        (0x201, 2) => 6,
        _ => functions(extension).len(),
    }
}

/// Exchanges the first `most` functions of a table.
///
/// # Safety
/// `table` has room for them, and the runtime has filled it in.
unsafe fn hand_out(extension: u64, most: usize, table: P) {
    for (i, name) in functions(extension).iter().enumerate().take(most) {
        // SAFETY: the runtime has filled in at least `most` functions of the table, and `i` is less.
        unsafe { LIBRARY.hand_out_named(table.cast::<P>().add(i), name.as_ptr()) };
    }
}

pub unsafe fn hsa_system_get_extension_table(
    _: u64,
    extension: u16,
    major: u16,
    minor: u16,
    table: P,
) -> u32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::hsa_system_get_extension_table(extension, major, minor, table) };
    if error == 0 && !table.is_null() {
        let extension = u64::from(extension);
        // SAFETY: the program's table, of this version, after the call that has filled it in.
        unsafe { hand_out(extension, entries(extension, minor.into()), table) };
    }
    error
}

pub unsafe fn hsa_system_get_major_extension_table(
    _: u64,
    extension: u16,
    major: u16,
    length: u64,
    table: P,
) -> u32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::hsa_system_get_major_extension_table(extension, major, length, table) };
    if error == 0 && !table.is_null() {
        let most = usize::try_from(length).unwrap_or(usize::MAX) / size_of::<P>();
        // SAFETY: the program's table of `length` bytes, after the call that has filled it in.
        unsafe { hand_out(extension.into(), most, table) };
    }
    error
}

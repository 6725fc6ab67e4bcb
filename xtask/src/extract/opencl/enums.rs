//! Which names are values of which type.
//!
//! The registry numbers its enumerants by vendor, not by type. The type stands
//! in the comments of `<require>` blocks (`comment="cl_device_info"`), and for
//! sets of bits in the name of `<enums type="bitmask">`. Both are merged: the
//! blocks first, features before extensions, so that a value's first name is
//! the core one and not its KHR or EXT alias.

mod value;

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, Result};
use hetrace_model::EnumGroup;
use roxmltree::Node;

use self::value::Values;
use super::{children, requirers};

/// Comments that name their type in words of their own.
const COMMENTS: &[(&str, &[&str])] = &[
    ("Command type for events created with clEnqueueAcquireEGLObjectsKHR", &["cl_command_type"]),
    ("clGetEventInfo response when param_name is CL_EVENT_COMMAND_TYPE", &["cl_command_type"]),
    ("clGetProgramInfo param_name", &["cl_program_info"]),
    ("command execution status", &["cl_command_execution_status"]),
    ("cl_media_adapter_set_khr", &["cl_dx9_media_adapter_set_khr"]),
    ("cl_media_adapter_type_khr", &["cl_dx9_media_adapter_type_khr"]),
    ("cl_mem_alloc_info_intel", &["cl_mem_info_intel"]),
    ("cl_semaphore_type", &["cl_semaphore_type_khr"]),
    (
        "cl_unified_shared_memory_capabilities_intel - bitfield",
        &["cl_device_unified_shared_memory_capabilities_intel"],
    ),
    // Operands of a property, among whose names they would be misread.
    ("cl_device_partition_property_ext - affinity domains", &[]),
    ("cl_device_partition_property_ext - list terminators", &[]),
];

/// Values that the registry does not list under their type.
const VALUES: &[(&str, &[&str])] = &[
    ("cl_device_partition_property", &["CL_DEVICE_PARTITION_BY_NAMES_INTEL"]),
    ("cl_semaphore_info_khr", &["CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR"]),
    // Names of queries that are also names of properties.
    ("cl_queue_properties", &["CL_QUEUE_PROPERTIES", "CL_QUEUE_SIZE"]),
    (
        "cl_sampler_properties",
        &["CL_SAMPLER_NORMALIZED_COORDS", "CL_SAMPLER_ADDRESSING_MODE", "CL_SAMPLER_FILTER_MODE"],
    ),
    (
        "cl_context_properties",
        &[
            "CL_CONTEXT_D3D10_DEVICE_KHR",
            "CL_CONTEXT_D3D11_DEVICE_KHR",
            "CL_CONTEXT_ADAPTER_D3D9_KHR",
            "CL_CONTEXT_ADAPTER_D3D9EX_KHR",
            "CL_CONTEXT_ADAPTER_DXVA_KHR",
            "CL_CONTEXT_D3D9_DEVICE_INTEL",
            "CL_CONTEXT_D3D9EX_DEVICE_INTEL",
            "CL_CONTEXT_DXVA_DEVICE_INTEL",
            "CL_CONTEXT_VA_API_DISPLAY_INTEL",
            "CL_CONTEXT_PERF_HINT_QCOM",
        ],
    ),
];

/// Listed under a type whose value it is not: a size to pass beside it.
const NOT_A_VALUE: &str = "CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM";

/// Types that also take the values of another, after their own.
const ALSO: &[(&str, &str)] = &[
    ("cl_kernel_exec_info_arm", "cl_kernel_exec_info"),
    ("cl_mem_properties", "cl_external_memory_handle_type_khr"),
    ("cl_mem_properties_intel", "cl_mem_properties"),
    ("cl_queue_properties_khr", "cl_queue_properties"),
    ("cl_semaphore_properties_khr", "cl_external_semaphore_handle_type_khr"),
    ("cl_svm_mem_flags_arm", "cl_svm_mem_flags"),
    ("cl_mem_migration_flags_ext", "cl_mem_migration_flags"),
];

/// The group of all results.
const ERRORS: &str = "cl_error";

type Groups = BTreeMap<String, Vec<String>>;

/// All groups by name.
pub fn read(root: Node<'_, '_>) -> Result<Vec<EnumGroup>> {
    let values = Values::read(root);
    let mut groups = Groups::new();
    for requirer in requirers(root) {
        for require in children(requirer, "require") {
            for group in named_in(require.attribute("comment").unwrap_or_default()) {
                groups.entry(group).or_default().extend(enumerants(require));
            }
        }
    }
    for names in groups.values_mut() {
        names.retain(|n| !ends_a_list(root, n));
    }
    let mut bits: HashSet<&str> = HashSet::new();
    for enums in children(root, "enums") {
        let name = enums.attribute("name").unwrap_or_default();
        if name.starts_with("ErrorCodes.") {
            groups.entry(ERRORS.to_owned()).or_default().extend(enumerants(enums));
        } else if enums.attribute("type") == Some("bitmask") && is_type_name(name) {
            groups.entry(name.to_owned()).or_default().extend(enumerants(enums));
        } else if let Some(group) = groups.get_mut(name)
            // With a range it is a block of numbers, not the values of a type.
            && !enums.has_attribute("start")
        {
            group.extend(enumerants(enums));
        }
        if enums.attribute("type") == Some("bitmask") {
            bits.extend(children(enums, "enum").filter_map(|e| e.attribute("name")));
        }
    }
    for (name, more) in VALUES {
        let known = more.iter().filter(|v| values.has(v));
        let known: Vec<String> = known.map(|v| (*v).to_owned()).collect();
        if !known.is_empty() {
            groups.entry((*name).to_owned()).or_default().extend(known);
        }
    }
    for (name, other) in ALSO {
        let more = groups.get(*other).cloned().unwrap_or_default();
        if !more.is_empty() {
            groups.entry((*name).to_owned()).or_default().extend(more);
        }
    }
    groups.into_iter().filter(|(_, names)| !names.is_empty()).map(|g| finish(g, &values, &bits)).collect()
}

fn finish(
    (name, names): (String, Vec<String>),
    values: &Values<'_>,
    bits: &HashSet<&str>,
) -> Result<EnumGroup> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for n in names {
        if n != NOT_A_VALUE && seen.insert(n.clone()) {
            let value = values.of(&n).with_context(|| format!("value of {n} in {name}"))?;
            out.push((n, value));
        }
    }
    let bits = out.iter().filter(|(n, _)| bits.contains(n.as_str())).count() * 2 > out.len();
    Ok(EnumGroup { name, bits, values: out })
}

/// Whether the registry gives this name for the sake of its number: the zeros
/// at the end of lists.
fn ends_a_list(root: Node<'_, '_>, name: &str) -> bool {
    let mut misc = children(root, "enums").filter(|e| e.attribute("name") == Some("MiscNumbers"));
    misc.any(|e| enumerants(e).any(|n| n == name))
}

fn enumerants(node: Node<'_, '_>) -> impl Iterator<Item = String> {
    children(node, "enum").filter_map(|e| e.attribute("name")).map(str::to_owned)
}

/// The types whose values a `<require>` with this comment lists.
fn named_in(comment: &str) -> Vec<String> {
    if let Some((_, types)) = COMMENTS.iter().find(|(c, _)| *c == comment) {
        return types.iter().map(|t| (*t).to_owned()).collect();
    }
    let plain = comment.strip_prefix("Additional ").unwrap_or(comment);
    // `OpenCL 1.0 cl_device_info enums that were deprecated in OpenCL 1.2`
    let plain = match plain.strip_prefix("OpenCL ").and_then(|rest| rest.split_once(' ')) {
        Some((_, rest)) => rest,
        None => plain,
    };
    let words = plain.split(' ').collect::<Vec<_>>();
    let mut types = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let joined = i == 0 || matches!(words[i - 1], "and" | "or");
        match joined && is_type_name(word) {
            true => types.push((*word).to_owned()),
            false if matches!(*word, "and" | "or") => {}
            false => break,
        }
    }
    // `cl_uint host_cache_policy` is about a member of a struct.
    if types == ["cl_uint"] { vec![] } else { types }
}

fn is_type_name(word: &str) -> bool {
    word.starts_with("cl_") && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn comments_name_types() {
        for (comment, types) in [
            ("cl_device_info", &["cl_device_info"][..]),
            ("cl_device_type - bitfield", &["cl_device_type"]),
            ("cl_mem_flags and cl_svm_mem_flags - bitfield", &["cl_mem_flags", "cl_svm_mem_flags"]),
            (
                "cl_semaphore_info_khr or cl_semaphore_properties_khr",
                &["cl_semaphore_info_khr", "cl_semaphore_properties_khr"],
            ),
            ("Additional cl_context_properties", &["cl_context_properties"]),
            ("OpenCL 1.0 cl_device_info enums that were deprecated in OpenCL 1.2", &["cl_device_info"]),
            ("OpenCL 1.0 APIs that were deprecated in OpenCL 1.2", &[]),
            ("cl_channel_order - defined in CL.h for OpenCL 2.0 and newer", &["cl_channel_order"]),
            ("cl_uint host_cache_policy", &[]),
            ("cl_intel_device_side_avc_motion_estimation.??", &[]),
            ("Error codes", &[]),
        ] {
            assert_eq!(named_in(comment), types, "{comment}");
        }
    }
}

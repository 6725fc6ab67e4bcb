//! Sizes that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

use crate::generated::prelude::P;
use crate::generated::real;

/// Sizes of the types that attributes have.
const INT: usize = 4;
const LONG: usize = 8;
/// A truth value, of which programs give room for one byte or four. The lowest byte says it all.
const TRUTH: usize = 1;
/// `CUmemFabricHandle` and `CUlogicalEndpointFabricHandle`.
const FABRIC: usize = 64;

/// Longer lists than this are a mistake of the program's, which the driver will find.
const MOST: usize = 1 << 20;

/// Bytes of the value of a `CUpointer_attribute`; 0 for one that is not known.
pub fn pointer_attribute_bytes(attribute: usize) -> usize {
    match attribute {
        // Context, addresses, buffer, range, pool, mapping, block.
        1 | 3 | 4 | 7 | 11 | 12 | 17..=20 => LONG,
        // P2P tokens: a struct.
        5 => 16,
        // Memory type, device, handle types, access, locality domain; and the one that can be set.
        2 | 6 | 9 | 14 | 16 | 22 => INT,
        // Managed, IPC capable, mapped, RDMA capable, decompress capable.
        8 | 10 | 13 | 15 | 21 => TRUTH,
        _ => 0,
    }
}

/// Bytes of the value of a `CUmemPool_attribute`; 0 for one that is not known.
pub fn pool_attribute_bytes(attribute: usize) -> usize {
    match attribute {
        1..=3 | 9..=12 | 14 | 15 => INT,
        4..=8 | 13 => LONG,
        _ => 0,
    }
}

/// Bytes of what an allocation or pool of a `CUmemAllocationHandleType` is
/// exported to: a file descriptor, or a handle for a fabric.
pub fn exported_bytes(handle_type: usize) -> usize {
    match handle_type {
        1 => INT,
        8 => FABRIC,
        _ => 0,
    }
}

/// Bytes behind the address that is imported; a file descriptor is passed in
/// the address's place.
pub fn imported_bytes(handle_type: usize) -> usize {
    if handle_type == 8 { FABRIC } else { 0 }
}

/// Bytes of a handle of a `CUlogicalEndpointIpcHandleType`.
pub fn endpoint_bytes(handle_type: usize) -> usize {
    if handle_type == 1 { FABRIC } else { 0 }
}

/// The sum of the numbers of 64 bits that stand at `offset` in each of `count`
/// elements of `stride` bytes.
pub fn sum_at(list: usize, count: usize, stride: usize, offset: usize) -> usize {
    if list == 0 || count > MOST {
        return 0;
    }
    let one = |i: usize| {
        let at = list.wrapping_add(i * stride + offset) as *const u64;
        // SAFETY: an element of a list as long as the program says.
        unsafe { at.read_unaligned() as usize }
    };
    (0..count).map(one).fold(0, usize::saturating_add)
}

/// What elements of `CUDA_MEMCPY3D_BATCH_OP` copy: the extent of each, in
/// bytes, or in elements of the array on either side.
pub fn volumes(list: usize, count: usize) -> usize {
    const STRIDE: usize = 112;
    const SIDES: [usize; 2] = [0, 40];
    const EXTENT: usize = 80;
    if list == 0 || count > MOST {
        return 0;
    }
    let word = |at: usize| {
        // SAFETY: inside an element of a list as long as the program says.
        unsafe { (at as *const u64).read_unaligned() as usize }
    };
    let one = |i: usize| {
        let op = list.wrapping_add(i * STRIDE);
        // The type is 32 bits wide, with 32 bits of padding behind it.
        let arrays = SIDES.into_iter().filter(|side| word(op.wrapping_add(*side)) & 0xffff_ffff == 2);
        let array = arrays.map(|side| word(op.wrapping_add(side + 8))).next();
        let element = array.map_or(1, array_element_bytes);
        let extent = [0, 8, 16].map(|i| word(op.wrapping_add(EXTENT + i)));
        extent.into_iter().fold(element, usize::saturating_mul)
    };
    (0..count).map(one).fold(0, usize::saturating_add)
}

/// Bytes of one element of an array; 0 if it is not known.
fn array_element_bytes(array: usize) -> usize {
    const FORMAT: usize = 6;
    const CHANNELS: usize = 7;
    // A CUDA_ARRAY3D_DESCRIPTOR.
    let mut descriptor = [0u32; 10];
    // SAFETY: room for what is written; the array is the program's.
    let error = unsafe { real::cuArray3DGetDescriptor_v2(descriptor.as_mut_ptr().cast(), array as P) };
    if error != 0 {
        return 0;
    }
    let channels = descriptor[CHANNELS] as usize;
    match descriptor[FORMAT] {
        // Integers and floating point numbers of 8, 16 and 32 bits.
        1 | 8 => channels,
        2 | 9 | 0x10 => 2 * channels,
        3 | 10 | 0x20 => 4 * channels,
        // Normalized integers, whose formats have the channels in them.
        0xc0 | 0xc6 => 1,
        0xc1 | 0xc3 | 0xc7 | 0xc9 => 2,
        0xc2 | 0xc4 | 0xc8 | 0xca => 4,
        0xc5 | 0xcb => 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_attributes_have_the_size_of_their_types() {
        assert_eq!([1, 2, 5, 8, 20, 22].map(pointer_attribute_bytes), [8, 4, 16, 1, 8, 4]);
        assert_eq!([0, 23, usize::MAX].map(pointer_attribute_bytes), [0; 3], "not known");
        assert_eq!([0, 1, 4, 9, 13, 15, 16].map(pool_attribute_bytes), [0, 4, 8, 4, 8, 4, 0]);
        assert_eq!([1, 8, 2].map(exported_bytes), [4, 64, 0]);
        assert_eq!([1, 8].map(imported_bytes), [0, 64]);
    }

    #[test]
    fn sums_are_of_elements_that_are_there() {
        let elements = [[1u64, 5], [2, 7], [3, u64::MAX]];
        let list = elements.as_ptr() as usize;
        assert_eq!(sum_at(list, 2, 16, 8), 12);
        assert_eq!(sum_at(list, 3, 16, 8), usize::MAX, "no overflow");
        assert_eq!((sum_at(0, 2, 16, 8), sum_at(list, MOST + 1, 16, 8)), (0, 0));
    }

    #[test]
    fn copies_of_no_array_have_their_extent_in_bytes() {
        let mut operation = [0u64; 14];
        (operation[10], operation[11], operation[12]) = (256, 3, 2);
        let list = [operation, operation];
        assert_eq!(volumes(list.as_ptr() as usize, 2), 2 * 256 * 3 * 2);
        assert_eq!(volumes(0, 2), 0);
    }
}

//! Sizes that only the API itself knows; named in `semantics.toml`.

use hetrace_interpose::table::Table;

use crate::generated::prelude::{P, element, null_mut};
use crate::generated::real;

const CL_IMAGE_FORMAT: u32 = 0x1110;
const CL_IMAGE_ELEMENT_SIZE: u32 = 0x1111;
const CL_DEPTH: u32 = 0x10BD;

/// Image → bytes of one of its elements. Images are released and their handles
/// used again, so the creating functions forget the old one.
static ELEMENTS: Table<4096> = Table::new();

/// Bytes of one element of an image; 0 if it is not known.
pub fn image_element_size(image: usize) -> usize {
    if let Some(size) = ELEMENTS.get(image as u64) {
        return size as usize;
    }
    let mut size = 0u64;
    // SAFETY: room for a size_t; the image is the program's.
    let error = unsafe {
        real::clGetImageInfo(image as P, CL_IMAGE_ELEMENT_SIZE, 8, (&raw mut size).cast(), null_mut())
    };
    if error != 0 {
        return 0;
    }
    ELEMENTS.set(image as u64, size);
    size as usize
}

/// Bytes of a region of an image.
pub fn image_bytes(image: usize, region: usize) -> usize {
    let region = region as *const u64;
    // SAFETY: NULL or the three sizes that the specification asks for.
    let elements =
        unsafe { element(region, 0).saturating_mul(element(region, 1)).saturating_mul(element(region, 2)) };
    elements.saturating_mul(image_element_size(image))
}

/// Bytes of a fill colour: four components, or the one of a depth image.
pub fn fill_color_bytes(image: usize) -> usize {
    let mut format = [0u32; 2];
    // SAFETY: room for a cl_image_format; the image is the program's.
    let error = unsafe {
        real::clGetImageInfo(image as P, CL_IMAGE_FORMAT, 8, format.as_mut_ptr().cast(), null_mut())
    };
    match (error, format) {
        (0, [CL_DEPTH, _]) => 4,
        (0, _) => 16,
        _ => 0,
    }
}

/// A memory object was created: its handle may have belonged to another image.
pub fn forget(object: P) {
    ELEMENTS.remove(object as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_as_many_bytes_as_its_elements() {
        let image = 0x7f00_3000;
        ELEMENTS.set(image as u64, 16);
        let region = [7u64, 3, 2];
        assert_eq!(image_bytes(image, region.as_ptr() as usize), 7 * 3 * 2 * 16);
        let huge = [u64::MAX, 2, 1];
        assert_eq!(image_bytes(image, huge.as_ptr() as usize), usize::MAX, "no overflow");
        assert_eq!(image_bytes(image, 0), 0, "no region");
        ELEMENTS.set(image as u64, 4);
        assert_eq!(image_element_size(image), 4);
        forget(image as P);
        assert_eq!(ELEMENTS.get(image as u64), None, "its handle may be another's");
    }
}

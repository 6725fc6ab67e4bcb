//! Types of other APIs that OpenCL's prototypes mention, as they are on 64-bit
//! Linux. The registry names them and the header they come from, no more.

use hetrace_model::{Kind, Member, Type};

/// A foreign type: name, kind, size, and for a struct its `uint32_t` fields.
pub struct Foreign(&'static str, Kind, u32, &'static [(&'static str, u32)]);

impl Foreign {
    /// The same in the model's words.
    pub fn to_type(&self) -> Type {
        let Foreign(name, kind, size, fields) = self;
        let mut offset = 0;
        let mut members = Vec::new();
        for (field, count) in *fields {
            let name = (*field).to_owned();
            members.push(Member {
                name,
                ty: "cl_uint".to_owned(),
                pointers: 0,
                offset,
                count: *count,
                since: String::new(),
            });
            offset += 4 * count;
        }
        assert_eq!(offset, if fields.is_empty() { 0 } else { *size }, "{name}");
        Type { name: (*name).to_owned(), kind: *kind, size: *size, members, ..Type::default() }
    }
}

/// Objects of Windows are only ever passed by pointer.
pub const FOREIGN: &[Foreign] = &[
    Foreign("ID3D10Buffer", Kind::Opaque, 0, &[]),
    Foreign("ID3D10Texture2D", Kind::Opaque, 0, &[]),
    Foreign("ID3D10Texture3D", Kind::Opaque, 0, &[]),
    Foreign("ID3D11Buffer", Kind::Opaque, 0, &[]),
    Foreign("ID3D11Texture2D", Kind::Opaque, 0, &[]),
    Foreign("ID3D11Texture3D", Kind::Opaque, 0, &[]),
    Foreign("IDirect3DSurface9", Kind::Opaque, 0, &[]),
    Foreign("HANDLE", Kind::Handle, 8, &[]),
    Foreign("UINT", Kind::Uint, 4, &[]),
    Foreign("D3DFORMAT", Kind::Uint, 4, &[]),
    Foreign("DXGI_FORMAT", Kind::Uint, 4, &[]),
    Foreign("VASurfaceID", Kind::Uint, 4, &[]),
    Foreign("VAImageFormat", Kind::Struct, 48, VA_IMAGE_FORMAT),
];

const VA_IMAGE_FORMAT: &[(&str, u32)] = &[
    ("fourcc", 1),
    ("byte_order", 1),
    ("bits_per_pixel", 1),
    ("depth", 1),
    ("red_mask", 1),
    ("green_mask", 1),
    ("blue_mask", 1),
    ("alpha_mask", 1),
    ("va_reserved", 4),
];

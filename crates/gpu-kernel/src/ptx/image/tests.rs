//! Containers made by hand, whole and damaged.

use proptest::prelude::*;

use super::*;

fn ptx(target: &str) -> String {
    format!("//\n.version 8.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n")
}

/// How an entry is stored.
#[derive(Debug, Clone, Copy)]
enum How {
    Raw,
    Lz4,
    Zstd,
}

fn entry(kind: u16, sm: u32, content: &[u8], how: How) -> Vec<u8> {
    let (stored, flags) = match how {
        How::Raw => (content.to_vec(), 0u64),
        How::Lz4 => (lz4_flex::block::compress(content), LZ4),
        How::Zstd => (zstd::bulk::compress(content, 3).expect("compressed"), ZSTD),
    };
    let length = stored.len() as u32;
    let mut payload = stored;
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0x0101u16.to_le_bytes());
    for word in [64, payload.len() as u32, 0, if flags == 0 { 0 } else { length }, 0x40, 8 << 16, sm, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for long in [flags | 0x11, 0, content.len() as u64] {
        bytes.extend(long.to_le_bytes());
    }
    assert_eq!(bytes.len(), ENTRY);
    bytes.extend(payload);
    bytes
}

fn fat(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = FAT.to_le_bytes().to_vec();
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(16u16.to_le_bytes());
    bytes.extend((entries.iter().map(Vec::len).sum::<usize>() as u64).to_le_bytes());
    bytes.extend(entries.concat());
    bytes
}

fn elf(section: &str, text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    let lines: Vec<u8> = text.bytes().map(|b| if b == b'\n' { 0 } else { b }).collect();
    let names = format!("\0{section}\0").into_bytes();
    let header = |name: u32, at: usize, size: usize| {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
        header
    };
    let sections = [header(1, 64, lines.len()), header(0, 64 + lines.len(), names.len())].concat();
    let place = (64 + lines.len() + names.len()) as u64;
    bytes[0x28..0x30].copy_from_slice(&place.to_le_bytes());
    bytes[0x3a..0x40].copy_from_slice(&[64, 0, 2, 0, 1, 0]);
    [bytes, lines, names, sections].concat()
}

#[test]
fn each_container_gives_its_text() {
    let wanted = ptx("sm_90");
    for how in [How::Raw, How::Lz4, How::Zstd] {
        assert_eq!(
            text(&fat(&[entry(1, 90, wanted.as_bytes(), how)]), 90).as_deref(),
            Ok(&*wanted),
            "{how:?}"
        );
        let within = elf(".nv_debug_ptx_txt", &wanted);
        assert_eq!(text(&fat(&[entry(2, 90, &within, how)]), 90).as_deref(), Ok(&*wanted), "ELF, {how:?}");
    }
    assert_eq!(text(&elf(".nv_debug_ptx_txt", &wanted), 90).as_deref(), Ok(&*wanted));
    let padded = [wanted.as_bytes(), &[0; 7]].concat();
    assert_eq!(text(&padded, 90).as_deref(), Ok(&*wanted));
}

#[test]
fn the_text_is_the_one_that_the_device_would_run() {
    let of = |targets: &[&str]| {
        let entries: Vec<_> = targets.iter().map(|t| entry(1, 0, ptx(t).as_bytes(), How::Zstd)).collect();
        fat(&entries)
    };
    assert_eq!(text(&of(&["sm_70", "sm_90", "sm_80", "sm_100"]), 90), Ok(ptx("sm_90")));
    assert_eq!(text(&of(&["sm_70", "sm_80"]), 86), Ok(ptx("sm_80")));
    assert_eq!(text(&of(&["sm_90a", "sm_80"]), 90), Ok(ptx("sm_90a")));
    assert_eq!(text(&of(&["sm_90a", "sm_80"]), 100), Ok(ptx("sm_80")));
    assert_eq!(text(&of(&["sm_100f", "sm_80"]), 103), Ok(ptx("sm_100f")));
    assert_eq!(text(&of(&["sm_100f"]), 120), Err(BadImage::Newer(100)));
    assert_eq!(text(&of(&["sm_100", "sm_120"]), 90), Err(BadImage::Newer(100)));
}

#[test]
fn what_has_no_text_says_why() {
    assert_eq!(text(&elf(".text", "x"), 90), Err(BadImage::NoText));
    assert_eq!(text(&fat(&[entry(2, 90, &elf(".text", "x"), How::Raw)]), 90), Err(BadImage::NoText));
    assert_eq!(text(b"!<arch>\n", 90), Err(BadImage::Unknown));
    let mut broken = fat(&[entry(1, 90, ptx("sm_90").as_bytes(), How::Zstd)]);
    broken[16 + 64] ^= 0xff;
    assert_eq!(text(&broken, 90), Err(BadImage::Compressed));
    let whole = fat(&[entry(1, 90, ptx("sm_90").as_bytes(), How::Raw)]);
    assert_eq!(text(&whole[..whole.len() - 1], 90), Err(BadImage::Short));
}

#[test]
fn a_size_that_nothing_could_have_takes_no_memory() {
    let mut bomb = fat(&[entry(1, 90, &vec![b' '; 1 << 20], How::Lz4)]);
    bomb[16 + 56..16 + 64].copy_from_slice(&LONGEST.to_le_bytes());
    assert_eq!(text(&bomb, 90), Err(BadImage::Compressed));
}

proptest! {
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..400, cut in 0usize..600) {
        let _ = text(&bytes, 90);
        for whole in [
            fat(&[entry(1, 90, ptx("sm_90").as_bytes(), How::Lz4), entry(2, 90, &elf(".nv_debug_ptx_txt", "x"), How::Raw)]),
            elf(".nv_debug_ptx_txt", &ptx("sm_90")),
        ] {
            let mut damaged = whole.clone();
            for (place, byte) in damaged.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            damaged.truncate(cut.max(1));
            let _ = text(&damaged, 90);
        }
    }

    #[test]
    fn texts_come_back_as_they_were(lines in "[ -~\n]{0,2000}") {
        let wanted = ptx("sm_75") + &lines;
        for how in [How::Raw, How::Lz4, How::Zstd] {
            let found = text(&fat(&[entry(1, 75, wanted.as_bytes(), how)]), 90);
            prop_assert_eq!(found.as_deref(), Ok(&*wanted));
        }
    }
}

//! nvJitLink: what it links is machine code, and its text is made of what it was linked of.

use super::*;

/// A library, a version of its header, an option, inputs: what `inside.c` links.
fn link(bed: &Bed, options: &[&str], arguments: &[&str]) -> Run {
    let mut all = vec!["jitlink"];
    all.extend(arguments);
    bed.run(options, &all, &[])
}

fn put(bed: &Bed, name: &str, bytes: &[u8]) -> String {
    let path = bed.folder.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    path.display().to_string()
}

/// The module with other names of kernels.
fn others() -> String {
    TEXT.replace("k1000", "m1000").replace("k2000", "m2000").replace("k3000", "m3000")
}

const FAKE: &str = "libnvJitLink.so.13";

#[test]
fn one_text_that_was_linked_is_handed_over() {
    let bed = Bed::new(TEXT.as_bytes());
    let image = bed.image.display().to_string();
    let fat = put(&bed, "fat", &fat(TEXT, How::Lz4));
    let bare = link(&bed, &[], &[FAKE, "_13_0", "", &format!("2={image}")]);
    assert_eq!(ran(&bare), twins(&[("k1000", 3), ("k2000", 3)]));
    for (version, input) in [
        ("_13_0", format!("2={image}")),
        ("", format!("2@{image}")),
        ("_13_0", format!("4={fat}")),
        ("", format!("10={image}")),
    ] {
        let run = link(&bed, ALL, &[FAKE, version, "", &input]);
        check_seen(&run, SEEN);
        check_recorded(&run);
    }
    let run = link(&bed, ALL, &[FAKE, "_13_0", "", &format!("2={image}")]);
    let calls = ways::print(&run);
    for call in [
        "__nvJitLinkCreate_13_0(",
        "options=[\"-arch=sm_90\"]",
        "inputType=NVJITLINK_INPUT_PTX",
        "name=\"image\"",
        "__nvJitLinkComplete_13_0(",
        "__nvJitLinkGetLinkedCubin_13_0(",
        "__nvJitLinkDestroy_13_0(",
    ] {
        assert!(calls.contains(call), "{call}: {calls}");
    }
}

#[test]
fn several_texts_that_were_linked_are_one() {
    let bed = Bed::new(TEXT.as_bytes());
    let (image, other) = (bed.image.display().to_string(), put(&bed, "other", others().as_bytes()));
    let run = link(&bed, ALL, &[FAKE, "_13_0", "", &format!("2={image}"), &format!("2@{other}")]);
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 3), ("k2000__hetrace_inside", 3)]));
    assert!(notes(&run).contains("4 kernels can record"), "{}", notes(&run));
    run.check_no_misuse();
}

/// Of links of LTO-IR the library itself has the text, if it is asked for it in place of machine code.
#[test]
fn links_of_lto_ir_are_made_again_for_their_text() {
    let bed = Bed::new(TEXT.as_bytes());
    let lto = put(&bed, "lto", format!("\u{1}\u{2}\u{3}\u{4}{TEXT}").as_bytes());
    let run = link(&bed, ALL, &[FAKE, "_13_0", "-lto", &format!("3={lto}")]);
    check_seen(&run, SEEN);
    check_recorded(&run);
    // The second link is in no trace.
    let calls = ways::print(&run);
    assert_eq!(calls.matches("nvJitLinkCreate_13_0(").count(), 1, "{calls}");
    assert!(!calls.contains("GetLinkedPtx") && !calls.contains("-ptx"), "{calls}");
}

#[test]
fn what_has_no_text_is_named_with_why() {
    let bed = Bed::new(TEXT.as_bytes());
    let image = bed.image.display().to_string();
    let lto = put(&bed, "lto", format!("\u{1}\u{2}\u{3}\u{4}{TEXT}").as_bytes());
    let (text, lto, twice) = (format!("2={image}"), format!("3={lto}"), format!("2@{image}"));
    let library = format!("6@{}", put(&bed, "libdevice.a", b"!<arch>\n"));
    for (option, inputs, why) in [
        (
            "-lto",
            [&lto, &text],
            "nvJitLink does not give its PTX: ERROR: -ptx requires that all inputs have LTOIR",
        ),
        ("", [&text, &library], "libdevice.a (input 2), in which no PTX is looked for"),
        ("", [&text, &twice], "linked of 2 inputs: k1000 is defined by two inputs"),
    ] {
        let run = link(&bed, ALL, &[FAKE, "_13_0", option, inputs[0], inputs[1]]);
        let bare = link(&bed, &[], &[FAKE, "_13_0", option, inputs[0], inputs[1]]);
        check_seen(&run, &bare.done.out);
        assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
        let said = notes(&run);
        assert!(said.contains("k1000 is as it was: ") && said.contains(why), "{why}: {said}");
    }
}

const DEFINED: &str = ".visible .func (.param .b32 r) shared_one (.param .b32 a) { .reg .b32 %r; ld.param.b32 %r, [a]; st.param.b32 [r], %r; ret; }";
const DECLARED: &str = ".extern .func (.param .b32 r) shared_one (.param .b32 a);";

/// What an assembler takes: a function that others may call, a variable of its own, and kernels.
const REAL: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 r) shared_one (.param .b32 a) { .reg .b32 %r; ld.param.b32 %r, [a]; st.param.b32 [r], %r; ret; }
.global .align 4 .u32 own = 7;
.visible .entry k1000(.param .u64 k_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	mov.u32 %r1, %tid.x;
	setp.gt.u32 %p1, %r1, 3;
	@%p1 bra $L__BB0_2;
	{
	.param .b32 a;
	.param .b32 r;
	st.param.b32 [a], %r1;
	call.uni (r), shared_one, (a);
	ld.param.b32 %r2, [r];
	}
	st.global.u32 [own], %r2;
$L__BB0_2:
	ret;
}
.visible .entry k2000()
{
	.reg .b32 %r<2>;
	ld.global.u32 %r1, [own];
	st.global.u32 [own], %r1;
	ret;
}
";

/// The real library, where `HETRACE_NVJITLINK` says where it is: of a wheel of PyPI, `nvidia-nvjitlink`. It needs no device.
#[test]
fn the_real_library_links_for_a_fake_driver() {
    let Some(library) = std::env::var_os("HETRACE_NVJITLINK") else {
        eprintln!("skipped: HETRACE_NVJITLINK does not name libnvJitLink.so (pip install nvidia-nvjitlink)");
        return;
    };
    let library = library.to_string_lossy().into_owned();
    let bed = Bed::new(REAL.as_bytes());
    let image = bed.image.display().to_string();
    let other = REAL.replace("k1000", "m1000").replace("k2000", "m2000").replace(DEFINED, DECLARED);
    let other = put(&bed, "other", other.as_bytes());
    let recorded = twins(&[("k1000__hetrace_inside", 3), ("k2000__hetrace_inside", 3)]);
    let (one, both) = (format!("2={image}"), format!("2@{other}"));
    for version in ["", "_13_0"] {
        for (inputs, kernels) in [(vec![&*one], 2), (vec![&*both, &*one], 4)] {
            let run = link(&bed, ALL, &[&[&*library, version, ""], &*inputs].concat());
            assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
            assert_eq!(ran(&run), recorded, "{}", notes(&run));
            let said = notes(&run);
            assert!(said.contains(&format!("{kernels} kernels can record")), "{said}");
            assert_eq!(ways::print(&run).matches(&format!("nvJitLinkComplete{version}(")).count(), 1);
        }
    }
}

//! Sources of OpenCL C, and what becomes of them: text is inserted and nothing else, and what can't be understood is refused.

use hetrace_gpu_kernel::opencl_c::{DEVICE, Request, Rewritten, rewrite};

fn rewritten(source: &str) -> Rewritten {
    rewrite(source, &Request { wanted: &|_| true, sample: 1, first: 0, image: "0" }).expect("a source")
}

/// What is inserted, in short.
fn short(text: &str) -> String {
    let text = text.strip_prefix(DEVICE).and_then(|text| text.strip_prefix("#line 1\n")).unwrap_or(text);
    let text = text
        .replace(", __global uint *__hetrace_pool, ulong __hetrace_launch)", " POOL)")
        .replace("__global uint *__hetrace_pool, ulong __hetrace_launch)", "POOL)")
        .replace(" __hetrace_item __hetrace_i; __hetrace_begin(&__hetrace_i, __hetrace_pool, __hetrace_launch, 0u, 1u);", " BEGIN;")
        .replace("__hetrace_end(&__hetrace_i);", "END;")
        .replace("&__hetrace_i, ", "")
        .replace("&__hetrace_i", "");
    text.replace("__hetrace_inside", "_TWIN").replace("__hetrace_", "")
}

fn body(source: &str) -> String {
    let text = short(&rewritten(&format!("kernel void k() {{{source}}}")).text);
    let inner = text.strip_prefix("kernel void k_TWIN(POOL) { BEGIN;");
    inner.and_then(|text| text.strip_suffix("END; }")).unwrap_or(&text).to_owned()
}

/// Why a kernel with this body is refused.
fn why(before: &str, source: &str) -> String {
    let done = rewritten(&format!("{before}kernel void k() {{{source}}}"));
    assert_eq!(done.description.kernels, vec![], "{}", done.text);
    done.description.refused.first().map(|one| one.reason.clone()).unwrap_or_default()
}

#[test]
fn each_choice_is_said_where_it_is_made() {
    let table = [
        ("a = b ? c : d && e;", "a = b ? c : d && e;"),
        ("if (a) b();", "if (choose((a) ? 1 : 0, 0u)) b();"),
        ("if (a) return; else { b; }", "if (choose((a) ? 1 : 0, 0u)) { END; return; } else { b; }"),
        (
            "if (a) { } else if (b) { c; }",
            "if (choose((a) ? 1 : 0, 0u)) { } else if (choose((b) ? 1 : 0, 1u)) { c; }",
        ),
        ("while (a(b, c)) { d; }", "while (choose((a(b, c)) ? 1 : 0, 0u)) { d; }"),
        ("do a--; while (a);", "do a--; while (choose((a) ? 1 : 0, 0u));"),
        (
            "for (int i = 0; i < n; i++) a[i] = (int2){1, 2};",
            "for (int i = 0; choose((i < n) ? 1 : 0, 0u); i++) a[i] = (int2){1, 2};",
        ),
        ("for (;;) { if (a) break; }", "for (;;) { if (choose((a) ? 1 : 0, 0u)) break; }"),
        (
            "__attribute__((opencl_unroll_hint(4))) for (; a; ) { continue; }",
            "__attribute__((opencl_unroll_hint(4))) for (; choose((a) ? 1 : 0, 0u); ) { continue; }",
        ),
        (
            "switch (a) { case 1: b; break; case 2: default: c; }",
            "{ switch (switch(), (a)) { case 1: case(0u, 2u, 0u); b; break; case 2: case(1u, 2u, 0u); default: case(2u, 2u, 0u); c; } }",
        ),
        (
            "switch (a) { case X ? 1 : 2: b; }",
            "{ switch (switch(), (a)) { case X ? 1 : 2: case(1u, 1u, 0u); b; } case(0u, 1u, 0u); }",
        ),
        ("goto l; l: if (a) goto l;", "goto l; l: if (choose((a) ? 1 : 0, 0u)) goto l;"),
    ];
    for (source, expected) in table {
        let found = body(source);
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn alternatives_of_the_preprocessor_are_a_choice() {
    let source = "\n#if A\nif (a) b;\n#elif B\nc;\n#endif\nd;\n#ifdef C\ne;\n#else\nf;\n#endif\n";
    let expected = "\n#if A\n way(0u, 2u, 0u);\n#line 3\nif (choose((a) ? 1 : 0, 1u)) b;\n#elif B\n way(1u, 2u, 0u);\n#line 5\nc;\n\
                    #else\n way(2u, 2u, 0u);\n#line 6\n#endif\nd;\n#ifdef C\ne;\n#else\nf;\n#endif\n";
    assert_eq!(body(source), expected);
}

#[test]
fn kernels_are_found_whatever_is_around_them() {
    let source = "#define GLOBAL __global\n#define KERNEL __kernel\n// kernel void no() {}\nvoid helper(int a) { if (a) return; }\n\
                  #if X\n__kernel\n#else\n__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n#endif\n\
                  void one(GLOBAL int *a, int kernel_size) { helper(1); }\nKERNEL void two(int n) { }\n\
                  __kernel void three(int n);\nconstant int kernels = 3;\n";
    let done = rewritten(source);
    let names: Vec<&str> = done.description.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!((names, done.description.refused), (vec!["one", "two"], vec![]));
    let text = short(&done.text);
    assert!(
        text.contains("void one_TWIN(GLOBAL int *a, int kernel_size POOL) { BEGIN; helper(1); END; }"),
        "{text}"
    );
    assert!(text.contains("void helper(int a) { if (a) return; }"), "{text}");
    // Nothing but what was inserted is other text.
    assert_eq!(
        rewrite("int a;\n", &Request { wanted: &|_| true, sample: 0, first: 0, image: "0" }).unwrap().text,
        "int a;\n"
    );
}

#[test]
fn blocks_have_their_lines() {
    let done = rewritten(
        "kernel void k(int n)\n{\n  int a = 0;\n  for (int i = 0;\n       i < n;\n       i++)\n    a += i;\n  if (a)\n    a++;\n}\n",
    );
    let kernel = &done.description.kernels[0];
    let lines: Vec<u32> = kernel.blocks.iter().filter_map(|block| block.line).collect();
    assert_eq!(lines, [3, 5, 7, 6, 8, 9]);
    assert_eq!(kernel.successors, [vec![1], vec![2, 4], vec![3], vec![1], vec![5, -1], vec![-1]]);
    assert!(!kernel.timed);
}

#[test]
fn what_is_not_understood_is_refused() {
    let table = [
        ("#define R(a) if (a) return;\n", "R(1)", "the macro R hides a jump"),
        ("#define S R\n#define R return\n", "S;", "the macro R hides a jump"),
        (
            "#define EACH for (int i = 0; i < 3; i++)\n",
            "EACH a;",
            "the macro EACH hides a part of a statement",
        ),
        ("#define OPEN if (a) {\n", "OPEN b; }", "hides a part of a statement"),
        ("#define B break\n", "for (;;) { B; }", "the macro B hides a part of a statement"),
        ("", "EACH(i, 3) { if (i) b; }", "may be a macro that hides a choice"),
        ("", "\n#if A\nif (a) {\n#else\nif (b) {\n#endif\nc; }", "a directive splits a statement"),
        ("", "\nif (a) b;\n#if A\nelse c;\n#endif\n", "an `else` without an `if`"),
        ("", "\n#include \"x.h\"\n", "what it includes is not known"),
        ("", "switch (a) { case 1: { case 2: b; } }", "a label within a statement"),
        ("", "A(if (a) b;)", "`if` within a statement"),
        ("", "if a;", "no `(`"),
        ("", "goto nowhere;", "no label nowhere"),
        ("", "break;", "a jump out of nothing"),
        ("#define k other\n", "a;", "a macro"),
        ("void f() { k(); }\n", "a;", "other code calls it"),
        ("global int counter = 0;\n", "a;", "counter, a variable in global memory"),
        ("int counter;\n", "a;", "counter, a variable in global memory"),
    ];
    for (before, source, expected) in table {
        let reason = why(before, source);
        assert!(reason.contains(expected), "{source}: {reason}");
    }
    let deep = format!("{}a;{}", "if (a) {".repeat(5000), "}".repeat(5000));
    assert!(why("", &deep).contains("too deep"));
    assert!(why("", &format!("a = {}1{};", "(".repeat(50000), ")".repeat(50000))).contains("too deep"));
}

#[test]
fn macros_that_hide_nothing_are_let_through() {
    let table = [
        ("#define SWAP(a, b) { int c = a; a = b; b = c; }\n", "SWAP(a, b) if (a) c;"),
        ("#define MAD(a) do { if (a) b; } while (0)\n", "MAD(a); if (a) c;"),
        ("#define UNROLL _Pragma(\"unroll\")\n", "if (a) UNROLL for (;b;) c;"),
        ("#define NOTHING\n", "NOTHING if (a) c;"),
        ("#define EACH(i) for (int i = 0; i < 3; i++) { a(i); if (i) continue; }\n", "EACH(i) if (a) c;"),
        ("", "union { float f; int i; } u; if (a) c;"),
        ("constant int table[] = {1, 2};\nconst sampler_t s = 1;\n", "if (a) c;"),
        ("typedef struct { int a; } s;\nstruct t { int b; };\nint f(int a);\n", "if (a) c;"),
    ];
    for (before, source) in table {
        let done = rewritten(&format!("{before}kernel void k() {{{source}}}"));
        assert_eq!(done.description.refused, vec![], "{before}");
        assert!(done.description.kernels[0].sites.len() < 3);
    }
}

#[test]
fn any_text_is_taken() {
    let mut state = 7u64;
    let pieces = [
        "kernel ",
        "void k(",
        ")",
        "{",
        "}",
        "if",
        "(",
        "for (;;)",
        "switch (a) {",
        "case 1:",
        "do",
        "while",
        ";",
        "\n#if A\n",
        "\n#else\n",
        "\n#endif\n",
        "\"",
        "/*",
        "*/",
        "return;",
        "é",
        "#define X {\n",
        "X",
        "\\\n",
        "global int a",
        "else",
    ];
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..30 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        let done = rewritten(&text);
        for kernel in &done.description.kernels {
            let graph = kernel.graph().expect("a graph");
            kernel.plan(&graph).expect("a plan");
        }
        // Without what is inserted it is what it was.
        let mut rest = done.text.as_bytes();
        for byte in text.bytes() {
            let at = rest.iter().position(|found| *found == byte).expect("all of it, in order");
            rest = &rest[at + 1..];
        }
    }
}

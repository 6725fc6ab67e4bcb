//! The short jumps: those that wrappers go on through, and the entries of the
//! copies. Macros, because there is one jump for each function of the API.

/// Makes a module `$module` whose `thunk(number)` is the jump of a function. Each
/// asks `$choose` with its number and with the place of the return address, and
/// goes on where that says, with all arguments as they were.
#[macro_export]
macro_rules! choosing_thunks {
    ($module:ident, $count:expr, $choose:path) => {
        mod $module {
            use $crate::library::P;

            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                ".text",
                ".p2align 4",
                "hetrace_choosing:",
                ".cfi_startproc",
                ".rept {count}",
                ".p2align 4",
                "lea r11, [rip - 7]",
                "jmp hetrace_choose",
                ".endr",
                ".p2align 4",
                "hetrace_choose:",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 208",
                "and rsp, -16",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov [rsp + 48], rax",
                "mov [rsp + 56], r10",
                "movups [rsp + 64], xmm0",
                "movups [rsp + 80], xmm1",
                "movups [rsp + 96], xmm2",
                "movups [rsp + 112], xmm3",
                "movups [rsp + 128], xmm4",
                "movups [rsp + 144], xmm5",
                "movups [rsp + 160], xmm6",
                "movups [rsp + 176], xmm7",
                "lea rdi, [rip + hetrace_choosing]",
                "sub r11, rdi",
                "shr r11, 4",
                "mov rdi, r11",
                "lea rsi, [rbp + 8]",
                "call {choose}",
                "mov r11, rax",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "mov rax, [rsp + 48]",
                "mov r10, [rsp + 56]",
                "movups xmm0, [rsp + 64]",
                "movups xmm1, [rsp + 80]",
                "movups xmm2, [rsp + 96]",
                "movups xmm3, [rsp + 112]",
                "movups xmm4, [rsp + 128]",
                "movups xmm5, [rsp + 144]",
                "movups xmm6, [rsp + 160]",
                "movups xmm7, [rsp + 176]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "jmp r11",
                ".cfi_endproc",
                ".globl hetrace_choosing",
                ".hidden hetrace_choosing",
                count = const $count,
                choose = sym $choose,
            );

            #[cfg(target_arch = "x86_64")]
            unsafe extern "C" {
                static hetrace_choosing: [u8; 0];
            }

            /// The jump of a function; none where there are no jumps.
            #[cfg(target_arch = "x86_64")]
            pub fn thunk(number: usize) -> Option<P> {
                let all = &raw const hetrace_choosing;
                (number < $count).then(|| all.cast::<[u8; 16]>().wrapping_add(number).cast_mut().cast())
            }

            #[cfg(not(target_arch = "x86_64"))]
            pub fn thunk(_: usize) -> Option<P> {
                let _ = $choose;
                None
            }
        }
    };
}

/// Makes a module `$module` whose `thunk(n)` is the n-th entry. It goes on to what
/// `$targets[n]` says, and when there are several copies leaves a hint which
/// entry it was: the stack pointer first, so that half a hint is none.
#[macro_export]
macro_rules! entry_thunks {
    ($module:ident, $count:expr, $targets:path) => {
        mod $module {
            use $crate::library::P;

            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                ".text",
                ".p2align 4",
                "hetrace_entries:",
                ".cfi_startproc",
                ".rept {count}",
                ".p2align 4",
                "lea r11, [rip - 7]",
                "jmp hetrace_enter",
                ".endr",
                ".p2align 4",
                "hetrace_enter:",
                "push rax",
                ".cfi_adjust_cfa_offset 8",
                "lea rax, [rip + hetrace_entries]",
                "sub r11, rax",
                "shr r11, 4",
                "cmp byte ptr [rip + {state}], 0",
                "jne 2f",
                "lea rax, [rip + {targets}]",
                "mov r11, [rax + r11 * 8]",
                "pop rax",
                ".cfi_adjust_cfa_offset -8",
                "jmp r11",
                ".cfi_adjust_cfa_offset 8",
                "2: push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov rax, [rip + hetrace_hint@GOTTPOFF]",
                "lea rdx, [rsp + 16]",
                "mov fs:[rax + 8], rdx",
                "lea rdx, [r11 + 1]",
                "mov fs:[rax], rdx",
                "lea rax, [rip + {targets}]",
                "mov r11, [rax + r11 * 8]",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rax",
                ".cfi_adjust_cfa_offset -8",
                "jmp r11",
                ".cfi_endproc",
                ".globl hetrace_entries",
                ".hidden hetrace_entries",
                count = const $count,
                state = sym $crate::early::STATE,
                targets = sym $targets,
            );

            #[cfg(target_arch = "x86_64")]
            unsafe extern "C" {
                static hetrace_entries: [u8; 0];
            }

            /// An entry; none where there are no entries.
            #[cfg(target_arch = "x86_64")]
            pub fn thunk(number: usize) -> Option<P> {
                let all = &raw const hetrace_entries;
                (number < $count).then(|| all.cast::<[u8; 16]>().wrapping_add(number).cast_mut().cast())
            }

            #[cfg(not(target_arch = "x86_64"))]
            pub fn thunk(_: usize) -> Option<P> {
                let _ = &$targets;
                None
            }
        }
    };
}

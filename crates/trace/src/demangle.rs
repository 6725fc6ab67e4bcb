//! Names of kernels as people wrote them.
//!
//! Compilers encode C++ (Itanium) and Rust names; other names are shown as they
//! are. A full name says what templates and parameters are; a short one fits
//! into a table.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use hetrace_gpu_kernel::ptx::TWIN;

/// Longer symbols are not looked at.
const MAX_SYMBOL: usize = 16 << 10;
/// Longer names are cut: templates in templates grow without limit.
const MAX_NAME: usize = 8 << 10;
/// Depth of nested names that is followed.
const MAX_DEPTH: u32 = 96;
/// Names up to here, in characters, are not shortened.
pub const SHORT: usize = 36;
/// Longest shortened name with what distinguishes it from others of the same template.
const MEANINGFUL: usize = 56;

/// Behind the name of a kernel whose launches record what happens inside, which has another symbol than the kernel.
pub const RECORDED: &str = " [inside]";

/// The whole name without the type of the result.
pub fn full(symbol: &str) -> Cow<'_, str> {
    or_twin(symbol, |symbol| decoded(symbol, false).map_or(Cow::Borrowed(symbol), Cow::Owned))
}

/// The name without parameters and the type of the result.
pub fn bare(symbol: &str) -> Cow<'_, str> {
    or_twin(symbol, |symbol| decoded(symbol, true).map_or(Cow::Borrowed(symbol), Cow::Owned))
}

/// The name of a symbol, or of the kernel that it is a twin of with [`RECORDED`] behind it.
fn or_twin<'s>(symbol: &'s str, name: impl Fn(&'s str) -> Cow<'s, str>) -> Cow<'s, str> {
    match symbol.strip_suffix(TWIN) {
        Some(of) => Cow::Owned(format!("{}{RECORDED}", name(of))),
        None => name(symbol),
    }
}

/// The name without parameters. If it has more than [`SHORT`] characters, without namespaces, too,
/// and of each list of arguments with the one only that says most: the first that is no number and no
/// built-in type; the rest is cut. A name that is not mangled is left as it is.
pub fn short(symbol: &str) -> Cow<'_, str> {
    let short = |name: String| Cow::Owned(shortened(&name));
    or_twin(symbol, |symbol| decoded(symbol, true).map_or(Cow::Borrowed(symbol), short))
}

/// The decoded name; none if it is no mangled name.
fn decoded(symbol: &str, bare: bool) -> Option<String> {
    if symbol.len() > MAX_SYMBOL {
        return None;
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        let mut out = Limited(String::new());
        // Beyond the limit the rest is left out.
        let _ = write!(out, "{name:#}");
        return Some(out.0);
    }
    if !symbol.starts_with("_Z") {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let parsed = Symbol::new_with_options(symbol, &options).ok()?;
    let mut options = DemangleOptions::new().no_return_type().recursion_limit(MAX_DEPTH);
    if bare {
        options = options.no_params();
    }
    let mut out = Limited(String::new());
    let complete = parsed.structured_demangle(&mut out, &options).is_ok();
    (complete || out.0.len() >= MAX_NAME).then_some(out.0).filter(|name| !name.is_empty())
}

/// Text that stops growing.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME {
            let room = MAX_NAME.saturating_sub(self.0.len());
            self.0.extend(text.chars().take(room));
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// As [`short`], of a name that is decoded, and has no parameters.
pub fn shortened(name: &str) -> String {
    let length = |text: &str| text.chars().count();
    let name = name.replace("(anonymous namespace)::", "");
    if length(&name) <= SHORT {
        return name;
    }
    if let Some(name) = distinctive(&name, 0) {
        return cut(name, MEANINGFUL);
    }
    let mut name = without_arguments(&name);
    while length(&name) > SHORT
        && let Some(at) = namespace(&name)
    {
        name.drain(..at);
    }
    cut(name, SHORT)
}

fn cut(name: String, room: usize) -> String {
    if name.chars().count() <= room {
        return name;
    }
    name.chars().take(room - 1).chain(['…']).collect()
}

/// Templates in templates that are looked into.
const NESTED: u32 = 3;

/// `a::b<4, c::d<e, float>, f>` to `b<d<e>>`: of the arguments the first that says what it is about, or
/// all if none does. None of a name without arguments, or with several lists of them.
fn distinctive(name: &str, depth: u32) -> Option<String> {
    let (head, arguments, tail) = split(name)?;
    if !tail.is_empty() || depth > NESTED {
        return None;
    }
    let said = match arguments.iter().find(|argument| says_something(argument)) {
        Some(argument) => {
            let argument = function_of_lambda(argument);
            let inner = distinctive(argument, depth + 1);
            inner.unwrap_or_else(|| last_of_path(&without_arguments(argument)).to_owned())
        }
        None => arguments.join(", "),
    };
    Some(format!("{}<{said}>", last_of_path(head)))
}

/// Whether an argument of a template is more than a number or a built-in type.
fn says_something(argument: &str) -> bool {
    const BUILT_IN: [&str; 12] = [
        "bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "void", "true",
        "false",
    ];
    let end = argument.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(argument.len());
    let first = &argument[..end];
    first.starts_with(|c: char| !c.is_ascii_digit()) && !BUILT_IN.contains(&first)
}

/// Of a lambda the function or class that it stands in says most.
fn function_of_lambda(name: &str) -> &str {
    let (mut depth, mut end) = (0u32, None);
    for (at, c) in name.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => end = end.or(Some(at)),
            '{' if depth == 0 && name[at..].starts_with("{lambda") => {
                let function = &name[..end.unwrap_or(at)];
                let function = function.strip_suffix("::").unwrap_or(function);
                return function.strip_suffix("::operator").unwrap_or(function);
            }
            _ => {}
        }
    }
    name
}

/// What follows the last namespace or class.
fn last_of_path(name: &str) -> &str {
    let mut name = name;
    while let Some(at) = namespace(name) {
        name = &name[at..];
    }
    name
}

/// A name's part before its first arguments, these, and what follows them.
fn split(name: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (mut depth, mut round, mut at) = (0u32, 0u32, 0);
    let (mut open, mut begin) = (None, 0);
    let mut arguments = Vec::new();
    while let Some(c) = name[at..].chars().next() {
        let length = operator(&name[at..]).unwrap_or(c.len_utf8());
        match &name[at..at + length] {
            "(" | "{" | "[" => round += 1,
            ")" | "}" | "]" => round = round.saturating_sub(1),
            "<" if round == 0 => {
                depth += 1;
                if depth == 1 {
                    open = Some(at);
                    begin = at + 1;
                }
            }
            "," if round == 0 && depth == 1 => {
                arguments.push(name[begin..at].trim());
                begin = at + 1;
            }
            ">" if round == 0 && depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    arguments.push(name[begin..at].trim());
                    return Some((&name[..open?], arguments, name[at + 1..].trim()));
                }
            }
            _ => {}
        }
        at += length;
    }
    None
}

/// Where what follows the first namespace or class begins; not one within brackets.
fn namespace(name: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in name.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && name[at..].starts_with("::") => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// `a<b<c>, d>::e<f>` to `a<…>::e<…>`.
fn without_arguments(name: &str) -> String {
    let (mut out, mut depth, mut rest) = (String::new(), 0usize, name);
    while let Some(c) = rest.chars().next() {
        let length = operator(rest).unwrap_or(c.len_utf8());
        let (token, behind) = rest.split_at(length);
        rest = behind;
        match token {
            "<" => {
                if depth == 0 {
                    out.push_str("<…");
                }
                depth += 1;
            }
            ">" if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    out.push('>');
                }
            }
            token if depth == 0 => out.push_str(token),
            _ => {}
        }
    }
    out
}

/// The length of the name of an operator, or of an arrow, whose `<` and `>` are no brackets.
fn operator(text: &str) -> Option<usize> {
    const SIGNS: [&str; 10] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<"];
    const NAME: &str = "operator";
    if text.starts_with("->") {
        return Some(2);
    }
    let signs = text.strip_prefix(NAME)?;
    let sign = SIGNS.into_iter().chain([">"]).find(|sign| signs.starts_with(sign))?;
    Some(NAME.len() + sign.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_are_decoded() {
        for (symbol, long, brief) in [
            ("_Z4copyPfS_", "copy(float*, float*)", "copy"),
            ("_ZN2ns3addIfEEvPT_i", "ns::add<float>(float*, int)", "ns::add<float>"),
            ("vecadd", "vecadd", "vecadd"),
            ("_Zbroken", "_Zbroken", "_Zbroken"),
            ("_RNvC6_123foo3bar", "123foo::bar", "123foo::bar"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write", "core::fmt::write"),
            ("_Z4copyPfS___hetrace_inside", "copy(float*, float*) [inside]", "copy [inside]"),
            ("vecadd__hetrace_inside", "vecadd [inside]", "vecadd [inside]"),
        ] {
            assert_eq!(full(symbol), long, "{symbol}");
            assert_eq!(short(symbol), brief, "{symbol}");
        }
    }

    #[test]
    fn short_names_keep_what_tells_most() {
        let symbol = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
        assert_eq!(short(symbol), "vectorized_elementwise_kernel<FillFunctor<float>>");
        for (name, brief) in [
            (
                "reduce_kernel<128, func_wrapper_t<float, sum<float>::operator()(at::Iterator&)::{lambda(float, float)#1}>, unsigned int>",
                "reduce_kernel<func_wrapper_t<sum<float>>>",
            ),
            ("some_namespace_of_a_library::kernel<4, bool operator< <int>(a::b const&), c>", "kernel<c>"),
            (
                "at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, (unsigned long)2> >",
                "vectorized_elementwise_kernel<sqrt_kernel_cuda>",
            ),
            (
                "at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, at::native::MulFunctor<float> >, X>",
                "vectorized_elementwise_kernel<AUnaryFunctor<MulFunctor<…",
            ),
            (
                "at::native::vectorized_layer_norm_kernel<float, float, false>",
                "vectorized_layer_norm_kernel<float, float, false>",
            ),
            (
                "a_namespace::of_a_class<int, float>::a_function_of_it<char>",
                "of_a_class<…>::a_function_of_it<…>",
            ),
        ] {
            assert_eq!(shortened(name), brief, "{name}");
        }
        let of_lambda = "ns::name_of_a_function(at::Tensor&)::{lambda(int)#1}::operator()";
        assert_eq!(shortened(of_lambda), "{lambda(int)#1}::operator()");
        let long = format!("_ZN2at{}", "6native29vectorized_elementwise_kernelE");
        assert!(short(&long).chars().count() <= SHORT);
        assert_eq!(shortened(&"x".repeat(60)).chars().count(), SHORT);
        assert_eq!(shortened(&format!("{}::kernel", "n".repeat(60))), "kernel");
    }
}

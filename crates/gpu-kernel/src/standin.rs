//! Stands where the rewriter will: twins that do not record yet.

use serde::Serialize;

use crate::plan::Mode;
use crate::ptx::{BadText, scan};

/// What is asked of a text.
pub struct Request<'a> {
    pub wanted: &'a dyn Fn(&str) -> bool,
    pub mode: Mode,
    pub sums: bool,
    pub sample: u32,
    pub first: u32,
    pub image: &'a str,
}

pub struct Rewritten {
    pub text: String,
    pub description: Description,
}

#[derive(Serialize)]
pub struct Description {
    pub image: String,
    pub kernels: Vec<Kernel>,
    pub refused: Vec<Refused>,
}

#[derive(Serialize)]
pub struct Kernel {
    pub number: u32,
    pub name: String,
}

#[derive(Serialize)]
pub struct Refused {
    pub name: String,
    pub reason: String,
}

pub fn rewrite(text: &str, request: &Request<'_>) -> Result<Rewritten, BadText> {
    let Request { wanted, mode: _, sums: _, sample: _, first, image } = *request;
    let module = scan(text)?;
    let (mut twins, mut kernels, mut refused) = (String::new(), Vec::new(), Vec::new());
    for function in module.functions.iter().filter(|f| f.entry && wanted(&text[f.name.clone()])) {
        let name = text[function.name.clone()].to_owned();
        if text[function.body.clone()].contains("setmaxnreg") {
            refused.push(Refused { name, reason: "its warps share out registers (setmaxnreg)".to_owned() });
            continue;
        }
        let head = format!(
            "{}{name}__hetrace_inside{}",
            &text[function.head.start..function.name.start],
            &text[function.name.end..function.head.end]
        );
        twins.push_str(&format!(".visible {head}{{{}}}\n", &text[function.body.clone()]));
        kernels.push(Kernel { number: first + kernels.len() as u32, name });
    }
    let pool = if twins.is_empty() { "" } else { "\n.const .align 8 .u64 __hetrace_inside;\n" };
    let description = Description { image: image.to_owned(), kernels, refused };
    Ok(Rewritten { text: format!("{text}{pool}{twins}"), description })
}

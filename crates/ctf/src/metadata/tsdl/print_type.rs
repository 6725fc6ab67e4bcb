//! Field classes to TSDL text.

use std::fmt::{Arguments, Write};

use super::names::{to_ident, to_raw_ident};
use super::quote::quoted;
use crate::class::{
    Base, ByteOrder, Encoding, EnumClass, Field, FieldClass, FieldPath, FloatClass, IntegerClass,
    StructClass, VariantClass,
};

/// Text with its indentation.
#[derive(Debug, Clone)]
pub(super) struct Printer {
    pub text: String,
    depth: usize,
    native: ByteOrder,
    /// Enumerations that were written before, and have a name.
    named: Vec<EnumClass>,
    /// Number of the first of them.
    first: usize,
}

impl Printer {
    /// Names that it gives begin with this number.
    pub fn new(native: ByteOrder, first: usize) -> Self {
        Self { text: String::new(), depth: 0, native, named: Vec::new(), first }
    }

    /// Writes enumerations with names, by which all that follows refers to them; those that have one
    /// already are left out.
    pub fn name_enums(&mut self, enums: Vec<&EnumClass>) {
        for class in enums {
            if self.named.contains(class) {
                continue;
            }
            let number = self.first + self.named.len();
            self.add(format_args!("enum {} : ", enum_name(number)));
            self.enum_body(class);
            self.text.push_str(";\n\n");
            self.named.push(class.clone());
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push('\t');
        }
    }

    pub fn line(&mut self, line: Arguments<'_>) {
        self.indent();
        self.add(line);
        self.text.push('\n');
    }

    fn add(&mut self, text: Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(text);
    }

    /// `keyword { … };`
    pub fn block(&mut self, keyword: &str, body: impl FnOnce(&mut Self)) {
        self.line(format_args!("{keyword} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.text.push_str("};\n\n");
    }

    /// `name := struct { … };`
    pub fn assign_struct(&mut self, name: &str, class: Option<&StructClass>) {
        let Some(class) = class else { return };
        self.indent();
        self.add(format_args!("{name} := "));
        self.structure(class);
        self.text.push_str(";\n");
    }

    fn structure(&mut self, class: &StructClass) {
        self.text.push_str("struct ");
        self.braced(|p| {
            for field in &class.fields {
                p.field(&field.class, &to_ident(&field.name));
            }
        });
        if class.min_align > 1 {
            self.add(format_args!(" align({})", class.min_align));
        }
    }

    fn braced(&mut self, body: impl FnOnce(&mut Self)) {
        self.text.push_str("{\n");
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.indent();
        self.text.push('}');
    }

    /// `type name[dims];`
    fn field(&mut self, class: &FieldClass, ident: &str) {
        self.indent();
        let mut dims = String::new();
        let mut innermost = class;
        loop {
            innermost = match innermost {
                FieldClass::Array(array) => {
                    let _ = write!(dims, "[{}]", array.len);
                    &array.element
                }
                FieldClass::Sequence(sequence) => {
                    let _ = write!(dims, "[{}]", path(&sequence.length));
                    &sequence.element
                }
                _ => break,
            };
        }
        self.class(innermost);
        self.add(format_args!(" {ident}{dims};\n"));
    }

    fn class(&mut self, class: &FieldClass) {
        match class {
            FieldClass::Integer(c) => self.integer(c),
            FieldClass::Float(c) => self.float(c),
            FieldClass::Enum(c) => self.enumeration(c),
            FieldClass::String(c) => match c.encoding {
                Encoding::Ascii => self.text.push_str("string { encoding = ASCII; }"),
                Encoding::None => self.text.push_str("string { encoding = none; }"),
                Encoding::Utf8 => self.text.push_str("string"),
                _ => self.text.push_str(UNKNOWN),
            },
            FieldClass::Struct(c) => self.structure(c),
            FieldClass::Variant(c) => self.variant(c),
            // `field` has unwrapped these.
            FieldClass::Array(c) => self.class(&c.element),
            FieldClass::Sequence(c) => self.class(&c.element),
            FieldClass::Optional(_) | FieldClass::Blob(_) => self.text.push_str(UNKNOWN),
        }
    }

    fn order(&mut self, order: ByteOrder) {
        if order != self.native {
            let order = if order == ByteOrder::Little { "le" } else { "be" };
            self.add(format_args!(" byte_order = {order};"));
        }
    }

    fn integer(&mut self, c: &IntegerClass) {
        if c.variable || c.reversed {
            return self.text.push_str(UNKNOWN);
        }
        let signed = u8::from(c.signed);
        self.add(format_args!("integer {{ size = {}; align = {}; signed = {signed};", c.size, c.align));
        match c.base {
            Base::Decimal => {}
            Base::Binary => self.text.push_str(" base = 2;"),
            Base::Octal => self.text.push_str(" base = 8;"),
            Base::Hexadecimal => self.text.push_str(" base = 16;"),
        }
        match c.encoding {
            Encoding::None => {}
            Encoding::Utf8 => self.text.push_str(" encoding = UTF8;"),
            Encoding::Ascii => self.text.push_str(" encoding = ASCII;"),
            _ => self.add(format_args!(" encoding = {UNKNOWN};")),
        }
        self.order(c.byte_order);
        if let Some(clock) = &c.clock {
            self.add(format_args!(" map = clock.{}.value;", to_raw_ident(clock)));
        }
        self.text.push_str(" }");
    }

    fn float(&mut self, c: &FloatClass) {
        self.add(format_args!(
            "floating_point {{ exp_dig = {}; mant_dig = {}; align = {};",
            c.exp_dig, c.mant_dig, c.align
        ));
        self.order(c.byte_order);
        self.text.push_str(" }");
    }

    fn enumeration(&mut self, c: &EnumClass) {
        if let Some(number) = self.named.iter().position(|named| named == c) {
            self.add(format_args!("enum {}", enum_name(self.first + number)));
            return;
        }
        self.text.push_str("enum : ");
        self.enum_body(c);
    }

    fn enum_body(&mut self, c: &EnumClass) {
        self.integer(&c.container);
        self.text.push(' ');
        self.braced(|p| {
            for m in c.mappings.iter() {
                let label = quoted(&m.label);
                if m.start == m.end {
                    p.line(format_args!("{label} = {},", m.start));
                } else {
                    p.line(format_args!("{label} = {} ... {},", m.start, m.end));
                }
            }
        });
    }

    fn variant(&mut self, c: &VariantClass) {
        self.add(format_args!("variant <{}> ", path(&c.tag)));
        self.braced(|p| {
            for Field { name, class } in &c.options {
                p.field(class, &to_raw_ident(name));
            }
        });
    }
}

/// Stands for a class that only CTF 2 has: no reader knows a type of this name.
const UNKNOWN: &str = "ctf_2_only";

/// Names of enumerations are apart from those of fields and types.
fn enum_name(number: usize) -> String {
    format!("values_{number}")
}

/// Returns a reference, each name as the field itself is written.
fn path(path: &FieldPath) -> String {
    let mut text = path.scope.map_or(String::new(), |scope| format!("{}.", scope.tsdl()));
    let names: Vec<String> = path.names.iter().map(|name| to_ident(name)).collect();
    text.push_str(&names.join("."));
    text
}

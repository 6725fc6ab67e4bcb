//! The syntax tree of TSDL.

use std::borrow::Cow;
use std::rc::Rc;

/// A declaration of any scope.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// `typedef type a, b[2];`
    Typedef { spec: TypeSpec, declarators: Vec<Declarator> },
    /// `typealias type := name;`
    TypeAlias { spec: TypeSpec, name: String },
    /// `struct a { … };` and the like: defines a name and no field.
    Type(TypeSpec),
    /// `type a, b[2];`
    Field { spec: TypeSpec, declarators: Vec<Declarator> },
    /// `a.b = value;`
    Assign(Assign),
    /// `a.b := type;`
    TypeAssign { path: Vec<String>, spec: TypeSpec },
    /// `event { … };`
    Block { line: u32, kind: String, items: Vec<Item> },
}

#[derive(Clone, Debug)]
pub(super) struct Assign {
    pub line: u32,
    pub path: Vec<String>,
    pub value: Literal,
}

impl Assign {
    /// Returns the name with its dots.
    pub fn name(&self) -> Cow<'_, str> {
        match &*self.path {
            [name] => name.into(),
            path => path.join(".").into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Int(i128),
    Str(String),
    Path(Vec<String>),
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Str(text) => write!(f, "{text:?}"),
            Literal::Path(path) => f.write_str(&path.join(".")),
        }
    }
}

/// A name and the array dimensions behind it, the outermost first.
#[derive(Clone, Debug)]
pub(super) struct Declarator {
    pub name: String,
    pub dims: Vec<Dim>,
}

#[derive(Clone, Debug)]
pub(super) enum Dim {
    Fixed(u64),
    Path(Vec<String>),
}

#[derive(Clone, Debug)]
pub(super) struct TypeSpec {
    pub line: u32,
    pub kind: Spec,
}

#[derive(Clone, Debug)]
pub(super) enum Spec {
    /// One or more words that name a type.
    Named(String),
    /// Equal ones are one.
    Integer(Rc<Vec<Assign>>),
    Float(Vec<Assign>),
    String(Vec<Assign>),
    Enum {
        name: Option<String>,
        container: Option<Box<TypeSpec>>,
        body: Option<Vec<EnumItem>>,
    },
    Struct {
        name: Option<String>,
        body: Option<Vec<Item>>,
        align: Option<i128>,
    },
    Variant {
        name: Option<String>,
        tag: Option<Vec<String>>,
        body: Option<Vec<Item>>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct EnumItem {
    pub label: String,
    pub range: Option<(i128, i128)>,
}

//! An API described as data: what its functions are called, what their
//! parameters mean, and how a call of each is laid out in a trace.
//!
//! Two inputs make a [`Model`]:
//! * `api.json`, extracted by machine from the API's registry or headers
//!   ([`Extracted`]): names, types, enumerations, prototypes;
//! * `semantics.toml`, written by hand ([`Semantics`]): what no header says,
//!   such as directions, lengths, lifetimes and roles.
//!
//! ```text
//! api.json ──┐
//!            ├─► resolve() ─► Model ─► layout::events() ─► codegen, TSDL, analyses
//! semantics ─┘        │
//!                     └─► the coverage gate: a pointer without a description is an error
//! ```
//!
//! The crate knows no API by name, does no I/O, and is never linked into a
//! traced program.

mod chains;
mod command;
mod ctype;
mod expr;
mod extracted;
mod function;
mod glob;
pub mod index;
pub mod layout;
mod listed;
mod made;
mod members;
mod memory;
pub mod one_or_more;
mod param;
mod params;
mod resolve;
mod resolved;
mod role;
mod semantics;
mod spec;

pub use chains::CHAIN_HEAD;
pub use command::{Collective, Command, Communicator};
pub use expr::{Expr, ExprError};
pub use extracted::{
    EnumGroup, Extracted, Function as ExtractedFunction, Kind, Member, Param as ExtractedParam, Registry,
    Type,
};
pub use function::{Details, Function, Named, Success, Variadic};
pub use glob::glob_matches;
pub use listed::{HasName, Listed};
pub use made::{Engines, Made};
pub use memory::{Current, EXCHANGED, Flags, HASHED, Holders, Memory, Place, Transfer};
pub use param::{Direction, Follow, Param};
pub use params::Params;
pub use resolve::{Problem, resolve};
pub use resolved::{HandedOut, Interpose, Model, Recorded, Timing, Tools, Union};
pub use role::{ROLES, Roles, is_role};
pub use semantics::{Chain, FunctionSemantics, Rule, Semantics, Suffixes};
pub use spec::{ParamSpec, SpecError};

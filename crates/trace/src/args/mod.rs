//! Arguments and results as people write them: enumerations and sets of bits by
//! name, structs by member, values of queries by the type that the model gives them.

mod compound;
mod info;
mod names;
mod plan;
mod writer;

pub use plan::{Plans, Role};
pub use writer::{Args, Piece, Typed};

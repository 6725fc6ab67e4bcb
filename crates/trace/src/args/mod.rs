//! Arguments and results as people write them: enumerations and sets of bits by
//! name, structs by member, values of queries by the type that the model gives them.

mod compound;
mod info;
mod names;
mod pieces;
mod plan;
mod value;
mod writer;

pub use pieces::{Args, Piece, Typed};
pub use plan::{Plans, Role};

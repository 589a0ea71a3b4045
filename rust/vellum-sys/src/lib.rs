//! The C interface of Vellum: all of `vellum/vellum.h`, which has the documentation.
//!
//! The declarations are written by hand, without bindgen. The test `header` compiles a C program that
//! compares each of them with the header. The crate `vellum` is the safe interface.
#![allow(non_camel_case_types)]

#[macro_use]
mod declare;
mod constants;
mod functions;
mod types;

pub use constants::*;
pub use functions::*;
pub use types::*;

/// What this crate declares, for the test that compares it with the header.
#[doc(hidden)]
pub mod declared {
    pub use crate::constants::declared_constants;
    pub use crate::functions::declared_functions;
    pub use crate::types::{declared_callbacks, declared_opaque, declared_structs};

    /// The name of a function or of a callback, its parameters' types and the type of its result, as in Rust.
    pub struct Function {
        pub name: &'static str,
        pub parameters: &'static [&'static str],
        pub result: &'static str,
        /// 0 for a callback.
        pub address: usize,
    }

    /// A field's name, its type as in Rust, and its offset.
    pub type Field = (&'static str, &'static str, usize);

    pub struct Struct {
        pub name: &'static str,
        pub size: usize,
        pub fields: Vec<Field>,
    }
}

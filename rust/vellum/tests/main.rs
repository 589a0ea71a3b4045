//! The tests of the crate: one program, which links once.
mod content;
mod errors;
mod processes;
mod regions;
mod support;
mod threads;

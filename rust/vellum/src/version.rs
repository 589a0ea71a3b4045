//! Versions that are open to read.
use std::ops::Deref;

use crate::memory::Memory;

/// A snapshot, or the head that a branch had when it was opened: memory that never changes.
///
/// Any number may be open, beside the live region and in any threads and processes, also when the snapshot is
/// removed meanwhile. [`Store::open_version`](crate::Store::open_version) opens one; dropping it closes it.
#[derive(Debug)]
pub struct Version {
    memory: Memory,
}

impl Version {
    pub(crate) fn new(memory: Memory) -> Version {
        Version { memory }
    }
}

impl Deref for Version {
    type Target = Memory;
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

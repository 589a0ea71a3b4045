//! Writes that are committed together or rolled back.
use std::ops::{Deref, Range};
use std::ptr::NonNull;

use vellum_sys as sys;

use crate::error::{check, Result};
use crate::ffi::c_string;
use crate::memory::Memory;
use crate::region::{reported, Region};
use crate::report::CommitReport;

/// A transaction: see [`Region::begin`]. Dropping it without a commit, as `?` or a panic does, rolls it back.
///
/// If it is leaked ([`std::mem::forget`]), it stays open: commits of the region are
/// [`Error::Busy`](crate::Error::Busy).
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction<'a> {
    region: &'a mut Region,
    handle: NonNull<sys::vellum_transaction>,
}

// SAFETY: vellum.h (THREADS): functions may be called from any thread; `&mut Region` is `Send`.
unsafe impl Send for Transaction<'_> {}
// SAFETY: `&Transaction` gives `&Memory`, which is `Sync`; it has no other functions.
unsafe impl Sync for Transaction<'_> {}

impl<'a> Transaction<'a> {
    pub(crate) fn new(region: &'a mut Region, handle: NonNull<sys::vellum_transaction>) -> Self {
        Transaction { region, handle }
    }

    /// The bytes of the region, to read and write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }

    /// As [`Region::grow`]; it belongs to the transaction.
    pub fn grow(&mut self, size_bytes: u64) -> Result<()> {
        self.region.grow(size_bytes)
    }

    /// As [`Region::zero`].
    pub fn zero(&mut self, range: Range<usize>) -> Result<()> {
        self.region.zero(range)
    }

    /// As [`Region::commit`]. After an error it is rolled back.
    pub fn commit(self, message: &str) -> Result<CommitReport> {
        let message = c_string(message)?;
        reported(|report| {
            // SAFETY: the handle is open; string and report are valid during the call. No slice is borrowed.
            unsafe { sys::vellum_transaction_commit(self.handle.as_ptr(), message.as_ptr(), report) }
        })
    }

    /// Discards its writes. Unlike a drop, it reports an error.
    pub fn rollback(self) -> Result<()> {
        // SAFETY: the handle is open. "No other thread may use the region meanwhile": `self` has it
        // exclusively.
        check(unsafe { sys::vellum_transaction_rollback(self.handle.as_ptr()) })
    }
}

impl Deref for Transaction<'_> {
    type Target = Memory;
    fn deref(&self) -> &Memory {
        self.region
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it after this. It rolls back what is open, while
        // `self` has the region exclusively.
        unsafe { sys::vellum_transaction_close(self.handle.as_ptr()) }
    }
}

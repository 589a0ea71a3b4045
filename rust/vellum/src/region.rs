//! Memory that can be written.
use std::ffi::CString;
use std::ops::{Deref, Range};
use std::os::raw::{c_char, c_int};
use std::slice;

use vellum_sys as sys;

use crate::error::{check, Result};
use crate::ffi::{c_string, handle_from};
use crate::memory::Memory;
use crate::pending::Pending;
use crate::pinned::PinnedMut;
use crate::report::CommitReport;
use crate::transaction::Transaction;

/// The live memory of a branch, which has one writer.
///
/// [`bytes_mut`](Region::bytes_mut) lends the memory to one writer at a time, and whatever commits or
/// replaces it takes `&mut Region`: a commit has no store of another thread half, and no slice outlives a
/// rollback. Several threads may write parts of it, as parts of any slice: `chunks_mut` and
/// [`std::thread::scope`].
///
/// Dropping a region closes it; writes that are not committed are lost.
#[derive(Debug)]
pub struct Region {
    memory: Memory,
}

impl Region {
    pub(crate) fn new(memory: Memory) -> Region {
        Region { memory }
    }

    /// The bytes, to read and write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `Memory::bytes`, and:
        // - The region is open to write (only then it is a `Region`), and its branch has one writer in all
        //   processes: no other handle maps this memory.
        // - `&mut self` is the only path to the bytes while the slice lives. The library's threads read pages
        //   for an asynchronous commit, eviction, or to free second copies; the kernel's write protection
        //   orders that with stores, of which none is lost: vellum.h (THREADS), "loads and stores need no
        //   more care than in plain memory".
        unsafe { slice::from_raw_parts_mut(self.memory.start(), self.memory.size_bytes()) }
    }

    /// Loads a range, and keeps it in memory while the result lives: system calls read and write it.
    pub fn pin_mut(&mut self, range: Range<usize>) -> Result<PinnedMut<'_>> {
        let pin = self.memory.pin_pages(&range)?;
        Ok(PinnedMut::new(&mut self.bytes_mut()[range], pin))
    }

    /// Makes everything written since the last commit durable, in one atomic step. After an error the last
    /// commit is the head, the memory is unchanged, and a later commit includes everything.
    pub fn commit(&mut self, message: &str) -> Result<CommitReport> {
        let message = c_string(message)?;
        reported(|report| {
            // SAFETY: the handle is open; strings and report are valid during the call. No slice is borrowed.
            unsafe { sys::vellum_commit(self.handle(), message.as_ptr(), report) }
        })
    }

    /// [`commit`](Region::commit), which looks for changes in these ranges only. Changes outside of them are
    /// in the next commit that looks there.
    pub fn commit_ranges(&mut self, written: &[Range<usize>], message: &str) -> Result<CommitReport> {
        let message = c_string(message)?;
        let spans = self.spans_of(written)?;
        reported(|report| {
            // SAFETY: as in `commit`; the spans are valid during the call.
            unsafe {
                sys::vellum_commit_ranges(
                    self.handle(),
                    spans.as_ptr(),
                    spans.len(),
                    message.as_ptr(),
                    report,
                )
            }
        })
    }

    /// [`commit`](Region::commit), and keeps that state under `name`, in one step.
    pub fn snapshot(&mut self, name: &str, message: &str) -> Result<CommitReport> {
        let (name, message) = (c_string(name)?, c_string(message)?);
        reported(|report| {
            // SAFETY: as in `commit`.
            unsafe { sys::vellum_snapshot(self.handle(), name.as_ptr(), message.as_ptr(), report) }
        })
    }

    /// Like [`commit`](Region::commit), but the call only finds and copies the dirty pages; a library thread
    /// does the rest. Later writes are not included. The next call that changes the region waits for the end.
    pub fn commit_async(&mut self, message: &str) -> Result<Pending> {
        let message = c_string(message)?;
        // SAFETY: as in `commit`; the handle is new.
        unsafe { Pending::open(|out| sys::vellum_commit_async(self.handle(), message.as_ptr(), out)) }
    }

    /// [`snapshot`](Region::snapshot), as [`commit_async`](Region::commit_async).
    pub fn snapshot_async(&mut self, name: &str, message: &str) -> Result<Pending> {
        let (name, message): (CString, CString) = (c_string(name)?, c_string(message)?);
        let (name, message): (*const c_char, *const c_char) = (name.as_ptr(), message.as_ptr());
        // SAFETY: as in `commit_async`.
        unsafe { Pending::open(|out| sys::vellum_snapshot_async(self.handle(), name, message, out)) }
    }

    /// Discards everything written since the last commit, and growth.
    pub fn rollback(&mut self) -> Result<()> {
        // SAFETY: the handle is open. "No other thread may use the region meanwhile": `&mut self`.
        check(unsafe { sys::vellum_rollback(self.handle()) })
    }

    /// Replaces the content by that of a version of the store, and commits that. Writes that are not
    /// committed are discarded. `version` is a snapshot, or `main~2`, `main@{yesterday}`, `latest`.
    pub fn checkout(&mut self, version: &str, message: &str) -> Result<CommitReport> {
        let (version, message) = (c_string(version)?, c_string(message)?);
        reported(|report| {
            // SAFETY: as in `commit`. "No other thread may use the region meanwhile": `&mut self`.
            unsafe { sys::vellum_checkout(self.handle(), version.as_ptr(), message.as_ptr(), report) }
        })
    }

    /// Begins a transaction: writes that are committed together or rolled back. Writes from before belong to
    /// it.
    pub fn begin(&mut self) -> Result<Transaction<'_>> {
        // SAFETY: the handle is open; the transaction's handle is new.
        let handle = handle_from(|out| unsafe { sys::vellum_begin(self.handle(), out) })?;
        Ok(Transaction::new(self, handle))
    }

    /// Makes the region larger, at the same address: new bytes are zero, and durable with the next commit.
    pub fn grow(&mut self, size_bytes: u64) -> Result<()> {
        // SAFETY: the handle is open, and no slice is borrowed.
        check(unsafe { sys::vellum_grow(self.handle(), size_bytes) })
    }

    /// Sets [`file_bytes`](Memory::file_bytes); durable with the next commit. A larger file grows the region,
    /// and by `room_bytes` more. The bytes past the end of a shorter one become zero.
    pub fn resize_file(&mut self, file_bytes: u64, room_bytes: u64) -> Result<()> {
        // SAFETY: the handle is open, and no slice is borrowed.
        check(unsafe { sys::vellum_resize_file(self.handle(), file_bytes, room_bytes) })
    }

    /// Sets a range to zero, without loading it: zeros take no space in a version.
    pub fn zero(&mut self, range: Range<usize>) -> Result<()> {
        let address = self.address_of(&range)?;
        // SAFETY: the handle is open, the range lies in its memory, and no slice is borrowed.
        check(unsafe { sys::vellum_zero(self.handle(), address.cast(), range.len()) })
    }
}

impl Deref for Region {
    type Target = Memory;
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

/// Calls a function that fills a report.
pub(crate) fn reported(call: impl FnOnce(*mut sys::vellum_commit_report) -> c_int) -> Result<CommitReport> {
    let mut report = sys::vellum_commit_report::new();
    check(call(&mut report))?;
    Ok(CommitReport::from_c(&report))
}

//! What versions contain: bytes, differences, plain files.
use std::ops::{ControlFlow, Range};
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::ptr;
use std::slice;

use vellum_sys as sys;

use crate::error::{check, Error, Result};
use crate::ffi::{c_path, c_string, Visitor};
use crate::region::reported;
use crate::report::CommitReport;
use crate::store::Store;

/// The sums of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffTotals {
    /// Byte by byte, because their page maps differ.
    pub pages_compared: u64,
    /// Of these, those that differ.
    pub pages_different: u64,
    /// Bytes that differ.
    pub bytes_different: u64,
    /// Ranges that differ.
    pub ranges: u64,
}

impl DiffTotals {
    fn from_c(totals: &sys::vellum_diff_totals) -> DiffTotals {
        DiffTotals {
            pages_compared: totals.pages_compared,
            pages_different: totals.pages_different,
            bytes_different: totals.bytes_different,
            ranges: totals.ranges,
        }
    }
}

fn range_of(range: &sys::vellum_byte_range) -> Range<u64> {
    range.offset_bytes..range.offset_bytes + range.length_bytes
}

/// The answer to the library: 0 continues. A panic and `Break` end the call.
fn answer(flow: Option<ControlFlow<()>>) -> c_int {
    c_int::from(flow != Some(ControlFlow::Continue(())))
}

/// A call that the callback itself has ended is no error.
fn unless_stopped(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::Stopped(_)) => Ok(()),
        other => other,
    }
}

impl Store {
    /// Reads bytes of a version, without mapping it.
    pub fn read(&self, version: &str, offset_bytes: u64, buffer: &mut [u8]) -> Result<()> {
        let version = c_string(version)?;
        let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the handle is open, the string is valid during the call, and the buffer has this length.
        check(unsafe { sys::vellum_read(self.handle(), version.as_ptr(), offset_bytes, to, length) })
    }

    /// Calls `visit` for every maximal run of bytes that differ, ascending. Its `Break` ends the comparison,
    /// and leaves the totals 0. The cost is proportional to the difference.
    pub fn diff<F>(&self, a: &str, b: &str, visit: F) -> Result<DiffTotals>
    where
        F: FnMut(Range<u64>) -> ControlFlow<()>,
    {
        /// SAFETY: the library passes a range, and the context below.
        unsafe extern "C" fn call<F: FnMut(Range<u64>) -> ControlFlow<()>>(
            range: *const sys::vellum_byte_range,
            context: *mut c_void,
        ) -> c_int {
            answer(Visitor::<F>::call(context, |visit| visit(range_of(&*range))))
        }
        let (a, b) = (c_string(a)?, c_string(b)?);
        let mut visitor = Visitor::new(visit);
        let mut totals = sys::vellum_diff_totals::new();
        let context = visitor.context();
        // SAFETY: the handle is open; strings, visitor and totals are valid during the call.
        let result = check(unsafe {
            sys::vellum_diff(self.handle(), a.as_ptr(), b.as_ptr(), Some(call::<F>), context, &mut totals)
        });
        visitor.finish();
        unless_stopped(result)?;
        Ok(DiffTotals::from_c(&totals))
    }

    /// [`diff`](Store::diff) with the bytes of both sides, in whole units of `granularity_bytes`. A range of
    /// more than 1 MiB is visited in parts.
    pub fn diff_bytes<F>(&self, a: &str, b: &str, granularity_bytes: u64, visit: F) -> Result<DiffTotals>
    where
        F: FnMut(Range<u64>, &[u8], &[u8]) -> ControlFlow<()>,
    {
        /// SAFETY: the library passes a range with its bytes, and the context below.
        unsafe extern "C" fn call<F: FnMut(Range<u64>, &[u8], &[u8]) -> ControlFlow<()>>(
            given: *const sys::vellum_diff_range,
            context: *mut c_void,
        ) -> c_int {
            let given = &*given;
            let length = given.range.length_bytes as usize;
            let a = slice::from_raw_parts(given.a.cast::<u8>(), length);
            let b = slice::from_raw_parts(given.b.cast::<u8>(), length);
            answer(Visitor::<F>::call(context, |visit| visit(range_of(&given.range), a, b)))
        }
        let (a, b) = (c_string(a)?, c_string(b)?);
        let mut visitor = Visitor::new(visit);
        let mut totals = sys::vellum_diff_totals::new();
        let context = visitor.context();
        // SAFETY: as in `diff`.
        let result = check(unsafe {
            sys::vellum_diff_bytes(
                self.handle(),
                a.as_ptr(),
                b.as_ptr(),
                granularity_bytes,
                Some(call::<F>),
                context,
                &mut totals,
            )
        });
        visitor.finish();
        unless_stopped(result)?;
        Ok(DiffTotals::from_c(&totals))
    }

    /// Writes a version as a plain sparse file, which must not exist.
    pub fn export(&self, version: &str, file: impl AsRef<Path>) -> Result<()> {
        let (version, file) = (c_string(version)?, c_path(file.as_ref())?);
        // SAFETY: the handle is open; the strings are valid during the call; there is no callback.
        check(unsafe {
            sys::vellum_export(self.handle(), version.as_ptr(), file.as_ptr(), None, ptr::null_mut())
        })
    }

    /// Replaces the content of a branch by a plain file, in one commit; a missing branch is created.
    pub fn import(&self, branch: &str, file: impl AsRef<Path>, message: &str) -> Result<CommitReport> {
        let (branch, file, message) = (c_string(branch)?, c_path(file.as_ref())?, c_string(message)?);
        reported(|report| {
            // SAFETY: the handle is open; strings and report are valid during the call; there is no callback.
            unsafe {
                sys::vellum_import(
                    self.handle(),
                    branch.as_ptr(),
                    file.as_ptr(),
                    message.as_ptr(),
                    report,
                    None,
                    ptr::null_mut(),
                )
            }
        })
    }

    /// The same, from a version of another store.
    pub fn import_version(
        &self,
        branch: &str,
        from: &Store,
        version: &str,
        message: &str,
    ) -> Result<CommitReport> {
        let (branch, version, message) = (c_string(branch)?, c_string(version)?, c_string(message)?);
        reported(|report| {
            // SAFETY: both handles are open; strings and report are valid during the call; there is no
            // callback.
            unsafe {
                sys::vellum_import_version(
                    self.handle(),
                    branch.as_ptr(),
                    from.handle(),
                    version.as_ptr(),
                    message.as_ptr(),
                    report,
                    None,
                    ptr::null_mut(),
                )
            }
        })
    }
}

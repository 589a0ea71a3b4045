//! Asynchronous commits.
use std::mem;
use std::os::raw::c_int;
use std::ptr::{self, NonNull};

use vellum_sys as sys;

use crate::error::Result;
use crate::ffi::handle_from;
use crate::region::reported;
use crate::report::CommitReport;

/// A commit that a library thread completes. It may outlive its region. Dropping it waits for the end, and
/// ignores an error: the next commit includes everything.
#[derive(Debug)]
#[must_use = "the commit may fail: call wait()"]
pub struct Pending {
    handle: NonNull<sys::vellum_pending>,
}

// SAFETY: vellum.h (THREADS): functions may be called from any thread, and `wait` and `drop` have the value
// for themselves.
unsafe impl Send for Pending {}
// SAFETY: `has_ended` only reads a future's state, which threads may do at once.
unsafe impl Sync for Pending {}

impl Pending {
    /// # Safety
    /// `open` makes the handle, which nothing else uses.
    pub(crate) unsafe fn open(open: impl FnOnce(*mut *mut sys::vellum_pending) -> c_int) -> Result<Pending> {
        Ok(Pending { handle: handle_from(open)? })
    }

    /// Whether it has ended, with or without an error.
    pub fn has_ended(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_pending_ended(self.handle.as_ptr()) != 0 }
    }

    /// Waits for the end. The result is that of [`Region::commit`](crate::Region::commit).
    pub fn wait(self) -> Result<CommitReport> {
        let handle = self.handle;
        mem::forget(self); // the call frees the handle
                           // SAFETY: the handle is open, and nothing uses it after this.
        reported(|report| unsafe { sys::vellum_wait(handle.as_ptr(), report) })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it after this; the report may be NULL.
        unsafe { sys::vellum_wait(self.handle.as_ptr(), ptr::null_mut()) };
    }
}

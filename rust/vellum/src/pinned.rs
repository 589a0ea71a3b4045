//! Ranges that stay in memory.
use std::ops::{Deref, DerefMut};
use std::os::raw::c_int;
use std::ptr::NonNull;

use vellum_sys as sys;

use crate::error::Result;
use crate::ffi::handle_from;

#[derive(Debug)]
pub(crate) struct Pin {
    handle: NonNull<sys::vellum_pin>,
}

// SAFETY: vellum.h (THREADS): functions may be called from any thread. The only one on a pin is its end, in
// `drop`.
unsafe impl Send for Pin {}
// SAFETY: `&Pin` has no functions.
unsafe impl Sync for Pin {}

impl Pin {
    /// # Safety
    /// `open` makes the new pin's handle, which nothing else uses.
    pub(crate) unsafe fn open(open: impl FnOnce(*mut *mut sys::vellum_pin) -> c_int) -> Result<Pin> {
        Ok(Pin { handle: handle_from(open)? })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it after this.
        unsafe { sys::vellum_unpin(self.handle.as_ptr()) }
    }
}

/// Bytes that stay in memory, to read: see [`Memory::pin`](crate::Memory::pin).
#[derive(Debug)]
pub struct Pinned<'a> {
    bytes: &'a [u8],
    _pin: Pin,
}

impl<'a> Pinned<'a> {
    pub(crate) fn new(bytes: &'a [u8], pin: Pin) -> Self {
        Pinned { bytes, _pin: pin }
    }
}

impl Deref for Pinned<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Bytes that stay in memory, to read and write: see [`Region::pin_mut`](crate::Region::pin_mut).
#[derive(Debug)]
pub struct PinnedMut<'a> {
    bytes: &'a mut [u8],
    _pin: Pin,
}

impl<'a> PinnedMut<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], pin: Pin) -> Self {
        PinnedMut { bytes, _pin: pin }
    }
}

impl Deref for PinnedMut<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for PinnedMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

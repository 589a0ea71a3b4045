//! Strings, structs and callbacks between Rust and C.
use std::any::Any;
use std::ffi::{CStr, CString};
use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::error::{check, Error, Result};

pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::InvalidArgument(format!("{text:?} has a zero byte")))
}

pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::InvalidArgument(format!("{} has a zero byte", path.display())))
}

/// A copy of a C string; empty for NULL.
///
/// # Safety
/// `text` is NULL, or a string that ends with a 0.
pub(crate) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// The handle that `open` writes, which is not NULL when it succeeds.
pub(crate) fn handle_from<T>(open: impl FnOnce(*mut *mut T) -> c_int) -> Result<NonNull<T>> {
    let mut handle = ptr::null_mut();
    check(open(&mut handle))?;
    NonNull::new(handle).ok_or_else(|| Error::Other(-1, "the library gives no handle".to_owned()))
}

/// A copy of a struct that the library passes to a callback. An older library has fewer fields: the others
/// are 0.
///
/// # Safety
/// `T` is a struct of vellum-sys that begins with `struct_size: usize`; all of its fields are integers, raw
/// pointers or options of functions. `from` points to such a struct, of `struct_size` bytes.
pub(crate) unsafe fn copy_of<T: Copy>(from: *const T) -> T {
    let known = from.cast::<usize>().read().min(size_of::<T>());
    let mut copy = MaybeUninit::<T>::zeroed();
    ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
    copy.assume_init()
}

/// A closure that a C callback calls. A panic of it must not enter C: it goes on when the C function has
/// returned.
pub(crate) struct Visitor<F> {
    visit: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F> Visitor<F> {
    pub(crate) fn new(visit: F) -> Self {
        Visitor { visit, panic: None }
    }

    /// The `context` argument of the C function.
    pub(crate) fn context(&mut self) -> *mut c_void {
        (self as *mut Self).cast()
    }

    /// Calls the closure, inside of a C callback. `None`: it panicked, now or in an earlier call.
    ///
    /// # Safety
    /// `context` is that of a visitor of this type, which nothing else uses meanwhile: the library calls back
    /// in the thread of the call.
    pub(crate) unsafe fn call<R>(context: *mut c_void, body: impl FnOnce(&mut F) -> R) -> Option<R> {
        let visitor = &mut *context.cast::<Self>();
        if visitor.panic.is_some() {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(|| body(&mut visitor.visit))) {
            Ok(result) => Some(result),
            Err(panic) => {
                visitor.panic = Some(panic);
                None
            }
        }
    }

    /// What was visited with. Call it after the C function: a panic of the closure goes on here.
    pub(crate) fn finish(self) -> F {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
        self.visit
    }
}

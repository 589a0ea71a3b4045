//! Errors of the library.
use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_int;

/// The result of a call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Each kind has the library's message, which names the cause and its place: the file, the
/// version, the page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A value outside its range, or a malformed name.
    InvalidArgument(String),
    /// There is no such store, branch or snapshot.
    NotFound(String),
    /// The name is taken.
    AlreadyExists(String),
    /// The path exists, but is not a Vellum store.
    NotAStore(String),
    /// Written by a newer Vellum: nothing is changed.
    NewerFormat(String),
    /// Another writer holds the branch, or a transaction is open.
    Busy(String),
    /// The medium, the store or the region cannot be written.
    ReadOnly(String),
    /// The disk is full: the last commit stays, and the region stays usable.
    NoSpace(String),
    /// The operating system refused.
    Io(String),
    /// Bytes on disk fail their checks.
    Corrupted(String),
    /// An earlier flush failed: close the region, and open the branch again.
    Poisoned(String),
    /// This kernel or build cannot do it.
    Unsupported(String),
    /// Address space, memory or descriptors were refused.
    OutOfMemory(String),
    /// A callback ended the call.
    Stopped(String),
    /// The store is encrypted, and no key was given, or one that does not fit.
    WrongKey(String),
    /// A version is not signed by a wanted key, or is not what was signed; or a remote shows an older or a forked
    /// head than before.
    Untrusted(String),
    /// An error of a newer library.
    Other(i32, String),
}

impl Error {
    /// The library's message.
    pub fn message(&self) -> &str {
        match self {
            Error::InvalidArgument(message)
            | Error::NotFound(message)
            | Error::AlreadyExists(message)
            | Error::NotAStore(message)
            | Error::NewerFormat(message)
            | Error::Busy(message)
            | Error::ReadOnly(message)
            | Error::NoSpace(message)
            | Error::Io(message)
            | Error::Corrupted(message)
            | Error::Poisoned(message)
            | Error::Unsupported(message)
            | Error::OutOfMemory(message)
            | Error::Stopped(message)
            | Error::WrongKey(message)
            | Error::Untrusted(message)
            | Error::Other(_, message) => message,
        }
    }

    fn new(code: c_int, message: String) -> Error {
        match code {
            vellum_sys::VELLUM_ERR_INVALID_ARGUMENT => Error::InvalidArgument(message),
            vellum_sys::VELLUM_ERR_NOT_FOUND => Error::NotFound(message),
            vellum_sys::VELLUM_ERR_ALREADY_EXISTS => Error::AlreadyExists(message),
            vellum_sys::VELLUM_ERR_NOT_A_STORE => Error::NotAStore(message),
            vellum_sys::VELLUM_ERR_NEWER_FORMAT => Error::NewerFormat(message),
            vellum_sys::VELLUM_ERR_BUSY => Error::Busy(message),
            vellum_sys::VELLUM_ERR_READ_ONLY => Error::ReadOnly(message),
            vellum_sys::VELLUM_ERR_NO_SPACE => Error::NoSpace(message),
            vellum_sys::VELLUM_ERR_IO => Error::Io(message),
            vellum_sys::VELLUM_ERR_CORRUPTED => Error::Corrupted(message),
            vellum_sys::VELLUM_ERR_POISONED => Error::Poisoned(message),
            vellum_sys::VELLUM_ERR_UNSUPPORTED => Error::Unsupported(message),
            vellum_sys::VELLUM_ERR_OUT_OF_MEMORY => Error::OutOfMemory(message),
            vellum_sys::VELLUM_ERR_STOPPED => Error::Stopped(message),
            vellum_sys::VELLUM_ERR_WRONG_KEY => Error::WrongKey(message),
            vellum_sys::VELLUM_ERR_UNTRUSTED => Error::Untrusted(message),
            other => Error::Other(other, message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

/// The result of a C function that has just returned `code` to this thread.
pub(crate) fn check(code: c_int) -> Result<()> {
    if code == vellum_sys::VELLUM_OK {
        return Ok(());
    }
    // SAFETY: the message is never NULL, ends with a 0, and belongs to this thread: it stays until this
    // thread's next failing call, and is copied before.
    let message = unsafe { CStr::from_ptr(vellum_sys::vellum_error_message()) };
    Err(Error::new(code, message.to_string_lossy().into_owned()))
}

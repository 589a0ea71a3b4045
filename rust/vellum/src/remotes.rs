//! Versions at other machines and in object stores.
use std::ffi::CString;
use std::os::raw::{c_char, c_void};
use std::path::Path;
use std::ptr;

use vellum_sys as sys;

use crate::error::{check, Result};
use crate::ffi::{c_path, c_string, copy_of, text_of, Visitor};
use crate::store::Store;

/// A remote of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remote {
    /// Its name in this store.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Only this store may push there.
    pub one_writer: bool,
}

/// Names for C: an array that ends with NULL, or NULL for all versions.
struct Names {
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Names {
    fn new(names: &[&str]) -> Result<Names> {
        let texts = names.iter().map(|name| c_string(name)).collect::<Result<Vec<_>>>()?;
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Ok(Names { _texts: texts, pointers })
    }

    fn as_ptr(&self) -> *const *const c_char {
        if self.pointers.len() == 1 {
            return ptr::null();
        }
        self.pointers.as_ptr()
    }
}

impl Store {
    /// Its remotes, sorted by name.
    pub fn remotes(&self) -> Result<Vec<Remote>> {
        /// SAFETY: the library passes a remote, and the context below.
        unsafe extern "C" fn visit(remote: *const sys::vellum_remote_info, context: *mut c_void) {
            Visitor::<Vec<Remote>>::call(context, |all| {
                let remote = copy_of(remote);
                all.push(Remote {
                    name: text_of(remote.name),
                    url: text_of(remote.url),
                    one_writer: remote.one_writer != 0,
                });
            });
        }
        let mut visitor = Visitor::new(Vec::new());
        // SAFETY: the handle is open; the visitor is valid during the call.
        let result = check(unsafe { sys::vellum_remotes(self.handle(), Some(visit), visitor.context()) });
        let found = visitor.finish();
        result.map(|()| found)
    }

    /// Adds a remote (`s3://bucket/prefix`, `file:///mnt/x`), after a probe of its server.
    pub fn add_remote(&self, name: &str, url: &str) -> Result<()> {
        let (name, url) = (c_string(name)?, c_string(url)?);
        // SAFETY: the handle is open; the strings are valid during the call; the options may be NULL.
        check(unsafe { sys::vellum_add_remote(self.handle(), name.as_ptr(), url.as_ptr(), ptr::null()) })
    }

    /// Removes a remote; its content stays.
    pub fn remove_remote(&self, name: &str) -> Result<()> {
        let name = c_string(name)?;
        // SAFETY: the handle is open; the string is valid during the call.
        check(unsafe { sys::vellum_remove_remote(self.handle(), name.as_ptr()) })
    }

    /// Sends versions to a remote, all or none; an empty slice: all versions.
    pub fn push(&self, remote: &str, versions: &[&str]) -> Result<()> {
        let (remote, versions) = (c_string(remote)?, Names::new(versions)?);
        let mut options = sys::vellum_push_options::new();
        options.versions = versions.as_ptr();
        // SAFETY: the handle is open; string and options are valid during the call; the report may be NULL;
        // there is no callback.
        check(unsafe {
            sys::vellum_push(
                self.handle(),
                remote.as_ptr(),
                &options,
                ptr::null_mut(),
                None,
                None,
                ptr::null_mut(),
            )
        })
    }

    /// Fetches versions from a remote; an empty slice: all of the remote's.
    pub fn pull(&self, remote: &str, versions: &[&str]) -> Result<()> {
        let (remote, versions) = (c_string(remote)?, Names::new(versions)?);
        let mut options = sys::vellum_pull_options::new();
        options.versions = versions.as_ptr();
        // SAFETY: as in `push`.
        check(unsafe {
            sys::vellum_pull(
                self.handle(),
                remote.as_ptr(),
                &options,
                ptr::null_mut(),
                None,
                None,
                ptr::null_mut(),
            )
        })
    }

    /// Creates the store `directory`, which must not exist, from a remote. With `lazy`, packs stay at the
    /// remote, and pages are fetched when they are read.
    pub fn clone_remote(url: &str, directory: impl AsRef<Path>, lazy: bool) -> Result<Store> {
        let (url, to) = (c_string(url)?, c_path(directory.as_ref())?);
        let mut options = sys::vellum_pull_options::new();
        options.lazy = lazy.into();
        // SAFETY: strings and options are valid during the call; the report may be NULL; there is no
        // callback.
        check(unsafe {
            sys::vellum_clone(
                url.as_ptr(),
                to.as_ptr(),
                &options,
                ptr::null_mut(),
                None,
                None,
                ptr::null_mut(),
            )
        })?;
        Store::open(directory)
    }
}

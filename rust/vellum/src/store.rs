//! Stores, and the versions in them.
use std::ffi::OsStr;
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vellum_sys as sys;

use crate::error::{check, Result};
use crate::ffi::{c_path, c_string, copy_of, handle_from, text_of, Visitor};
use crate::options::{RegionOptions, StoreOptions};
use crate::region::Region;
use crate::version::Version;

/// A directory that holds every version of its regions, or a remote that can be read.
///
/// Its regions and versions may outlive it. Threads share it by reference, or by [`std::sync::Arc`].
#[derive(Debug)]
pub struct Store {
    handle: NonNull<sys::vellum_store>,
}

// SAFETY: store.hpp: "every call may be made from any thread, concurrently". A handle is closed once: by
// `drop`, which has the value for itself.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

/// A snapshot, or the head of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionInfo {
    /// Its name.
    pub name: String,
    /// A branch's head; otherwise a snapshot.
    pub is_branch: bool,
    /// The branch on which it was created.
    pub branch: String,
    /// The message of the commit.
    pub message: String,
    /// The snapshot before it on its line; empty: none.
    pub parent: String,
    /// Commits on its line.
    pub sequence: u64,
    /// When it was committed.
    pub committed_at: SystemTime,
    /// When the snapshot or the branch was created.
    pub created_at: SystemTime,
    /// The size of its memory.
    pub region_bytes: u64,
    /// Of these, the plain file's.
    pub file_bytes: u64,
    /// Since the parent.
    pub pages_changed: u64,
    /// To packs, since the parent.
    pub bytes_added: u64,
    /// For a snapshot: larger than that of all earlier snapshots; 0: a branch.
    pub order: u64,
}

impl VersionInfo {
    /// # Safety
    /// `info` is one that the library passes to a callback.
    pub(crate) unsafe fn from_c(info: *const sys::vellum_version_info) -> VersionInfo {
        let info = copy_of(info);
        VersionInfo {
            name: text_of(info.name),
            is_branch: info.is_branch != 0,
            branch: text_of(info.branch),
            message: text_of(info.message),
            parent: text_of(info.parent),
            sequence: info.sequence,
            committed_at: time_of(info.time_ns),
            created_at: time_of(info.created_ns),
            region_bytes: info.region_bytes,
            file_bytes: info.file_bytes,
            pages_changed: info.pages_changed,
            bytes_added: info.bytes_added,
            order: info.order,
        }
    }
}

fn time_of(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

impl Store {
    /// Creates a store. `path` must not exist, or be an empty directory.
    pub fn create(path: impl AsRef<Path>) -> Result<Store> {
        StoreOptions::new().create(path)
    }

    /// Opens a directory, or the URL of a remote (`s3://bucket/prefix`, `file:///mnt/x`), whose versions can
    /// then be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Store> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the string is valid during the call; the handle is new.
        unsafe { Ok(Store::from_handle(handle_from(|out| sys::vellum_store_open(path.as_ptr(), out))?)) }
    }

    /// Opens a store, or creates it.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Store> {
        StoreOptions::new().open_or_create(path)
    }

    /// # Safety
    /// The handle is open, and nothing else uses it.
    pub(crate) unsafe fn from_handle(handle: NonNull<sys::vellum_store>) -> Store {
        Store { handle }
    }

    pub(crate) fn handle(&self) -> *mut sys::vellum_store {
        self.handle.as_ptr()
    }

    /// Its path or URL.
    pub fn path(&self) -> PathBuf {
        // SAFETY: the handle is open, and owns the string, which is copied.
        let bytes = unsafe { std::ffi::CStr::from_ptr(sys::vellum_store_path(self.handle())) };
        PathBuf::from(OsStr::from_bytes(bytes.to_bytes()))
    }

    /// 32 hex digits.
    pub fn id(&self) -> Result<String> {
        let mut id = [0; 33];
        // SAFETY: the handle is open, and the array has room for 32 digits and a 0.
        check(unsafe { sys::vellum_store_id(self.handle(), id.as_mut_ptr()) })?;
        // SAFETY: the string ends with a 0.
        Ok(unsafe { text_of(id.as_ptr()) })
    }

    /// Creates a branch with a region that is all zero.
    pub fn create_region(&self, branch: &str, size_bytes: u64) -> Result<Region> {
        RegionOptions::new().create(self, branch, size_bytes)
    }

    /// Opens a branch to write. [`Error::Busy`](crate::Error::Busy) when another writer has it, in any
    /// process.
    pub fn open_region(&self, branch: &str) -> Result<Region> {
        RegionOptions::new().open(self, branch)
    }

    /// Opens a branch, grown if it is smaller, or creates it.
    pub fn open_or_create_region(&self, branch: &str, size_bytes: u64) -> Result<Region> {
        RegionOptions::new().open_or_create(self, branch, size_bytes)
    }

    /// Opens a snapshot, or a branch's current head, to read. `name` may also be `main~2`, `main@{yesterday}`
    /// or `latest`, here and wherever a version is read.
    pub fn open_version(&self, name: &str) -> Result<Version> {
        RegionOptions::new().open_version(self, name)
    }

    /// All versions: snapshots in order of creation, then branches by name.
    pub fn versions(&self) -> Result<Vec<VersionInfo>> {
        // SAFETY: the handle is open; `visit_versions` gives a callback and its context.
        self.visit_versions(|visit, context| unsafe { sys::vellum_versions(self.handle(), visit, context) })
    }

    /// One version. [`Error::NotFound`](crate::Error::NotFound).
    pub fn version(&self, name: &str) -> Result<VersionInfo> {
        let c_name = c_string(name)?;
        // SAFETY: as in `versions`; the string is valid during the call.
        let found = self.visit_versions(|visit, context| unsafe {
            sys::vellum_find_version(self.handle(), c_name.as_ptr(), visit, context)
        })?;
        found.into_iter().next().ok_or_else(|| crate::Error::NotFound(format!("no version {name:?}")))
    }

    fn visit_versions(
        &self,
        call: impl FnOnce(sys::vellum_version_fn, *mut c_void) -> c_int,
    ) -> Result<Vec<VersionInfo>> {
        /// SAFETY: the library passes a version, and the context below.
        unsafe extern "C" fn visit(info: *const sys::vellum_version_info, context: *mut c_void) -> c_int {
            let took = Visitor::<Vec<VersionInfo>>::call(context, |all| all.push(VersionInfo::from_c(info)));
            c_int::from(took.is_none())
        }
        let mut visitor = Visitor::new(Vec::new());
        let result = check(call(Some(visit), visitor.context()));
        let found = visitor.finish();
        result.map(|()| found)
    }

    /// The name of the version that `version` means, such as `main~2`, `main@{yesterday}` or `latest`.
    pub fn resolve(&self, version: &str) -> Result<String> {
        let version = c_string(version)?;
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the handle is open, the string is valid during the call, and the array has the given size.
        check(unsafe {
            sys::vellum_resolve(self.handle(), version.as_ptr(), name.as_mut_ptr(), name.len())
        })?;
        // SAFETY: the string ends with a 0.
        Ok(unsafe { text_of(name.as_ptr()) })
    }

    /// Creates a branch that continues `from_version`.
    pub fn create_branch(&self, name: &str, from_version: &str) -> Result<()> {
        let (name, from) = (c_string(name)?, c_string(from_version)?);
        // SAFETY: the handle is open; the strings are valid during the call; the encoding may be NULL.
        check(unsafe { sys::vellum_create_branch(self.handle(), name.as_ptr(), from.as_ptr(), ptr::null()) })
    }

    /// Creates a snapshot of a version: of a branch's last commit, also while a writer works.
    pub fn create_snapshot(&self, name: &str, from_version: &str, message: &str) -> Result<()> {
        let (name, from, message) = (c_string(name)?, c_string(from_version)?, c_string(message)?);
        // SAFETY: the handle is open; the strings are valid during the call.
        check(unsafe {
            sys::vellum_create_snapshot(self.handle(), name.as_ptr(), from.as_ptr(), message.as_ptr())
        })
    }

    /// Converts a snapshot into a branch of the same name.
    pub fn convert_to_branch(&self, name: &str) -> Result<()> {
        let name = c_string(name)?;
        // SAFETY: the handle is open; the string is valid during the call.
        check(unsafe { sys::vellum_convert_to_branch(self.handle(), name.as_ptr()) })
    }

    /// Gives a branch another name. [`Error::Busy`] while it has a writer. Snapshots keep the name of the branch that
    /// they were created on.
    pub fn rename_branch(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (c_string(from)?, c_string(to)?);
        // SAFETY: the handle is open; the strings are valid during the call.
        check(unsafe { sys::vellum_rename_branch(self.handle(), from.as_ptr(), to.as_ptr()) })
    }

    /// Removes a snapshot, or a branch that has no writer. Other versions stay whole, and open ones readable.
    pub fn remove(&self, name: &str) -> Result<()> {
        let name = c_string(name)?;
        // SAFETY: the handle is open; the string is valid during the call.
        check(unsafe { sys::vellum_remove(self.handle(), name.as_ptr()) })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it after this; regions keep what they need.
        unsafe { sys::vellum_store_close(self.handle()) }
    }
}

//! How stores are created, and regions are opened. The defaults serve most programs.
use std::ffi::CString;
use std::os::raw::c_int;
use std::path::{Path, PathBuf};
use std::ptr;

use vellum_sys as sys;

use crate::error::Result;
use crate::ffi::{c_path, c_string, handle_from};
use crate::memory::Memory;
use crate::region::Region;
use crate::store::Store;
use crate::version::Version;

/// How pages are loaded and writes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// `Uffd`, or else `Sigsegv`; the environment variable `VELLUM_ENGINE` overrides it.
    Automatic,
    /// userfaultfd(2): Linux 6.7 and later.
    Uffd,
    /// mprotect(2) and SIGSEGV: any Linux.
    Sigsegv,
    /// A private mapping of a plain file: [`RegionOptions::image`].
    Mapped,
}

impl Engine {
    pub(crate) fn from_c(number: c_int) -> Engine {
        match number {
            sys::VELLUM_ENGINE_UFFD => Engine::Uffd,
            sys::VELLUM_ENGINE_SIGSEGV => Engine::Sigsegv,
            sys::VELLUM_ENGINE_MAPPED => Engine::Mapped,
            _ => Engine::Automatic,
        }
    }

    fn to_c(self) -> c_int {
        match self {
            Engine::Automatic => sys::VELLUM_ENGINE_AUTOMATIC,
            Engine::Uffd => sys::VELLUM_ENGINE_UFFD,
            Engine::Sigsegv => sys::VELLUM_ENGINE_SIGSEGV,
            Engine::Mapped => sys::VELLUM_ENGINE_MAPPED,
        }
    }
}

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// The default.
    Default,
    /// None.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at a level from 1 to 19; 0: the default.
    Zstd(i32),
}

/// How changed pages are stored.
#[derive(Clone, Debug)]
pub struct Encoding {
    c: sys::vellum_encoding,
}

// SAFETY: the struct has numbers only.
unsafe impl Send for Encoding {}
// SAFETY: as above.
unsafe impl Sync for Encoding {}

impl Default for Encoding {
    fn default() -> Self {
        Encoding { c: sys::vellum_encoding::new() }
    }
}

impl Encoding {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How pages are compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        let (number, level) = match compression {
            Compression::Default => (sys::VELLUM_COMPRESSION_DEFAULT, 0),
            Compression::None => (sys::VELLUM_COMPRESSION_NONE, 0),
            Compression::Lz4 => (sys::VELLUM_COMPRESSION_LZ4, 0),
            Compression::Zstd(level) => (sys::VELLUM_COMPRESSION_ZSTD, level),
        };
        self.c.compression = number;
        self.c.compression_level = level;
        self
    }

    /// Pages compressed together: a power of two from 4 KiB to 128 MiB.
    #[must_use]
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.c.block_bytes = bytes;
        self
    }

    /// Stores a SHA-256 with every block, in addition to its checksum.
    #[must_use]
    pub fn sha256(mut self, sha256: bool) -> Self {
        self.c.hash = if sha256 { sys::VELLUM_HASH_SHA256 } else { sys::VELLUM_HASH_NONE };
        self
    }
}

/// Options of a new store.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    encoding: Option<Encoding>,
    pack_bytes: u64,
    journal_half_bytes: u32,
}

impl StoreOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Of its regions, unless a branch has its own.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// The size at which a pack file is sealed: 1 MiB to 1 TiB.
    #[must_use]
    pub fn pack_bytes(mut self, bytes: u64) -> Self {
        self.pack_bytes = bytes;
        self
    }

    /// The amount of small commits that the packs may lack: 64 KiB to 64 MiB.
    #[must_use]
    pub fn journal_half_bytes(mut self, bytes: u32) -> Self {
        self.journal_half_bytes = bytes;
        self
    }

    /// Creates a store. `path` must not exist, or be an empty directory.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        let path = c_path(path.as_ref())?;
        let options = self.to_c();
        // SAFETY: the strings and the options are valid during the call.
        let open = |out: *mut _| unsafe { sys::vellum_store_create(path.as_ptr(), &options, out) };
        // SAFETY: the handle is new.
        handle_from(open).map(|handle| unsafe { Store::from_handle(handle) })
    }

    /// Opens a store, or creates it with these options.
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store> {
        let path = c_path(path.as_ref())?;
        let options = self.to_c();
        // SAFETY: the strings and the options are valid during the call.
        let open = |out: *mut _| unsafe { sys::vellum_store_open_or_create(path.as_ptr(), &options, out) };
        // SAFETY: the handle is new.
        handle_from(open).map(|handle| unsafe { Store::from_handle(handle) })
    }

    /// The result points into `self`.
    fn to_c(&self) -> sys::vellum_store_options {
        let mut options = sys::vellum_store_options::new();
        options.encoding = self.encoding.as_ref().map_or(ptr::null(), |encoding| &encoding.c);
        options.pack_bytes = self.pack_bytes;
        options.journal_half_bytes = self.journal_half_bytes;
        options
    }
}

/// Options of an opening of a region or a version, as [`std::fs::OpenOptions`] are of a file.
#[derive(Clone, Debug)]
pub struct RegionOptions {
    c: sys::vellum_region_options, // its pointers are NULL
    encoding: Option<Encoding>,
    spill_directory: Option<PathBuf>,
    image_path: Option<PathBuf>,
}

// SAFETY: the struct has no pointers but NULL.
unsafe impl Send for RegionOptions {}
// SAFETY: as above.
unsafe impl Sync for RegionOptions {}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions {
            c: sys::vellum_region_options::new(),
            encoding: None,
            spill_directory: None,
            image_path: None,
        }
    }
}

impl RegionOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How pages are loaded. [`Engine::Mapped`] needs [`RegionOptions::image`].
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.c.engine = engine.to_c();
        self
    }

    /// The address space to reserve for [`Region::grow`]. It costs nothing until it is touched.
    #[must_use]
    pub fn capacity_bytes(mut self, bytes: u64) -> Self {
        self.c.capacity_bytes = bytes;
        self
    }

    /// Maps the region at the address of its first opening, or fails with
    /// [`Error::Busy`](crate::Error::Busy).
    #[must_use]
    pub fn fixed_address(mut self, fixed: bool) -> Self {
        self.c.fixed_address = fixed.into();
        self
    }

    /// The encoding of this opening's commits, and of a branch that it creates.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Threads that help to commit; -1: none, 0: the default.
    #[must_use]
    pub fn encode_threads(mut self, threads: i32) -> Self {
        self.c.encode_threads = threads;
        self
    }

    /// The limit of the region's memory. Beyond it pages are evicted.
    #[must_use]
    pub fn memory_limit_bytes(mut self, bytes: u64) -> Self {
        self.c.memory_limit_bytes = bytes;
        self
    }

    /// The directory of the file for dirty pages beyond the limit.
    #[must_use]
    pub fn spill_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spill_directory = Some(directory.into());
        self
    }

    /// The unit of loading and eviction: a power of two from 4096 to 262144.
    #[must_use]
    pub fn fault_bytes(mut self, bytes: u32) -> Self {
        self.c.fault_bytes = bytes;
        self
    }

    /// [`Memory::prefetch`] moves pages of a version into huge pages of 2 MiB.
    #[must_use]
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.c.huge_pages = huge.into();
        self
    }

    /// Records which pages were touched, and loads them at the next opening.
    #[must_use]
    pub fn working_set(mut self, record: bool) -> Self {
        self.c.working_set = record.into();
        self
    }

    /// Collects garbage in the background while the region is written; the default is true.
    #[must_use]
    pub fn background_gc(mut self, collect: bool) -> Self {
        self.c.no_background_gc = (!collect).into();
        self
    }

    /// A library thread serves page faults, instead of handlers of signals.
    #[must_use]
    pub fn fault_thread(mut self, thread: bool) -> Self {
        self.c.fault_thread = thread.into();
        self
    }

    /// Processes of one user that open the same version with this option share its pages.
    ///
    /// # Safety
    /// While the version is open, no program changes the library's file of these pages in /dev/shm.
    #[must_use]
    pub unsafe fn share(mut self, share: bool) -> Self {
        self.c.share = share.into();
        self
    }

    /// Selects [`Engine::Mapped`] with the plain file at `path`, which holds the last commit.
    ///
    /// # Safety
    /// While the region is open, no program writes or truncates this file: its pages are the region's memory.
    #[must_use]
    pub unsafe fn image(mut self, path: impl Into<PathBuf>) -> Self {
        self.image_path = Some(path.into());
        self
    }

    /// Creates a branch with a region that is all zero, of a multiple of 4096 bytes.
    pub fn create(&self, store: &Store, branch: &str, size_bytes: u64) -> Result<Region> {
        self.open_memory(branch, |branch, options, out| {
            // SAFETY: `open_memory` gives strings and options that are valid during the call.
            unsafe { sys::vellum_region_create(store.handle(), branch, size_bytes, options, out) }
        })
        .map(Region::new)
    }

    /// Opens a branch to write. [`Error::Busy`](crate::Error::Busy) when another writer has it, in any
    /// process.
    pub fn open(&self, store: &Store, branch: &str) -> Result<Region> {
        self.open_memory(branch, |branch, options, out| {
            // SAFETY: as in `create`.
            unsafe { sys::vellum_region_open(store.handle(), branch, options, out) }
        })
        .map(Region::new)
    }

    /// Opens a branch, grown if it is smaller, or creates it.
    pub fn open_or_create(&self, store: &Store, branch: &str, size_bytes: u64) -> Result<Region> {
        self.open_memory(branch, |branch, options, out| {
            // SAFETY: as in `create`.
            unsafe { sys::vellum_region_open_or_create(store.handle(), branch, size_bytes, options, out) }
        })
        .map(Region::new)
    }

    /// Opens a snapshot, or a branch's current head, to read. `name` may also be `main~2`, `main@{yesterday}`
    /// or `latest`.
    pub fn open_version(&self, store: &Store, name: &str) -> Result<Version> {
        self.open_memory(name, |name, options, out| {
            // SAFETY: as in `create`.
            unsafe { sys::vellum_region_open_version(store.handle(), name, options, out) }
        })
        .map(Version::new)
    }

    fn open_memory(
        &self,
        name: &str,
        open: impl FnOnce(
            *const std::os::raw::c_char,
            *const sys::vellum_region_options,
            *mut *mut sys::vellum_region,
        ) -> c_int,
    ) -> Result<Memory> {
        let name = c_string(name)?;
        let spill_directory = optional_path(&self.spill_directory)?;
        let image_path = optional_path(&self.image_path)?;
        let mut options = self.c;
        options.encoding = self.encoding.as_ref().map_or(ptr::null(), |encoding| &encoding.c);
        options.spill_directory = spill_directory.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        options.image_path = image_path.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        // SAFETY: the handle is new. Other processes can change the memory of an image only, and pages that
        // are shared: `image` and `share` are unsafe.
        unsafe { Memory::open(self.image_path.is_some(), |out| open(name.as_ptr(), &options, out)) }
    }
}

fn optional_path(path: &Option<PathBuf>) -> Result<Option<CString>> {
    path.as_deref().map(c_path).transpose()
}

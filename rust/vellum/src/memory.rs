//! Memory that can be read: of regions and of versions.
use std::ops::Range;
use std::os::raw::c_int;
use std::ptr::NonNull;
use std::slice;

use vellum_sys as sys;

use crate::error::{check, Error, Result};
use crate::ffi::{handle_from, text_of};
use crate::options::Engine;
use crate::pinned::{Pin, Pinned};

/// What a [`Region`](crate::Region) and a [`Version`](crate::Version) have in common: bytes that can be read.
///
/// A system call, such as that of `File::write_all`, fails with `EFAULT` for bytes that are not in memory:
/// [`pin`](Memory::pin) them first. A page that cannot be read back from the store ends the process with
/// SIGBUS; [`prefetch`](Memory::prefetch) gives an error instead.
#[derive(Debug)]
pub struct Memory {
    handle: NonNull<sys::vellum_region>,
}

// SAFETY: vellum.h (THREADS): functions may be called from any thread, and a handle is closed once: by
// `drop`, which has the value for itself. What changes the memory takes `&mut Region`, so through `&Memory`
// all threads only read.
unsafe impl Send for Memory {}
// SAFETY: as above. `prefetch`, `advise` and `pin` load and evict pages; they change no byte.
unsafe impl Sync for Memory {}

/// How a program will use a range. Advice changes when pages are loaded and evicted, never their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Reading in order is detected, and read ahead.
    Normal,
    /// Read in order.
    Sequential,
    /// Not read in order.
    Random,
    /// Start to load it; the call does not wait.
    WillNeed,
    /// Evict it. Nothing is lost.
    DontNeed,
}

/// The pages of a region in memory now, and those evicted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The limit of the region, or of the process when the region has none.
    pub limit_bytes: u64,
    /// Base copies and the program's copies.
    pub resident_bytes: u64,
    /// Total since the opening.
    pub evicted_bytes: u64,
    /// Dirty pages that are only in the spill file.
    pub spilled_pages: u64,
    /// Space that the spill file occupies.
    pub spill_file_bytes: u64,
    /// Total written to the spill file since the opening.
    pub spill_written_bytes: u64,
    /// Of the resident bytes, those that other processes may share.
    pub shared_bytes: u64,
}

impl Memory {
    /// Takes the region that `open` opens.
    ///
    /// # Safety
    /// `open` makes the new region's handle, which nothing else uses. Unless `is_file` is true, its options
    /// do not permit that other processes change its memory.
    pub(crate) unsafe fn open(
        is_file: bool,
        open: impl FnOnce(*mut *mut sys::vellum_region) -> c_int,
    ) -> Result<Memory> {
        let memory = Memory { handle: handle_from(open)? };
        if memory.engine() == Engine::Mapped && !is_file {
            return Err(Error::Unsupported(
                "engine mapped (VELLUM_ENGINE): its memory is a file that other programs can change; in Rust \
                 only RegionOptions::image() selects it"
                    .to_owned(),
            ));
        }
        Ok(memory)
    }

    pub(crate) fn handle(&self) -> *mut sys::vellum_region {
        self.handle.as_ptr()
    }

    pub(crate) fn start(&self) -> *mut u8 {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_data(self.handle()) }.cast()
    }

    /// The bytes. They are loaded page by page, as they are read.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY:
        // - `start` is not NULL, and the region maps its `size_bytes` bytes for reading until the handle is
        //   closed, which needs the whole `Memory`. They are initialised: they come from the store, or are
        //   zero.
        // - No byte changes while the slice lives. Stores need `&mut Region`, as do the calls that change
        //   bytes or sizes: rollback, checkout, zero, grow. Other processes cannot store to this memory
        //   (`open`). The library's threads load, evict and replace pages, but with the same bytes: vellum.h
        //   (THREADS).
        // - The size is that of a mapping, thus at most isize::MAX.
        unsafe { slice::from_raw_parts(self.start(), self.size_bytes()) }
    }

    /// The number of bytes: a multiple of 4096.
    pub fn size_bytes(&self) -> usize {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_size(self.handle()) as usize }
    }

    /// The limit of [`Region::grow`](crate::Region::grow).
    pub fn capacity_bytes(&self) -> usize {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_capacity(self.handle()) as usize }
    }

    /// The size of the plain file that the memory represents: see [`Store::export`](crate::Store::export).
    pub fn file_bytes(&self) -> u64 {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_file_size(self.handle()) }
    }

    /// The branch, or the version that was opened.
    pub fn name(&self) -> String {
        // SAFETY: the handle is open, and owns the name, which is copied.
        unsafe { text_of(sys::vellum_region_name(self.handle())) }
    }

    /// The number of the last commit on its line.
    pub fn sequence(&self) -> u64 {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_sequence(self.handle()) }
    }

    /// The engine in use.
    pub fn engine(&self) -> Engine {
        // SAFETY: the handle is open.
        Engine::from_c(unsafe { sys::vellum_region_engine(self.handle()) })
    }

    /// Whether system calls accept bytes that are not in memory.
    pub fn serves_system_calls(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { sys::vellum_region_serves_system_calls(self.handle()) != 0 }
    }

    /// Its pages in memory. Takes 0.5 to 4 ms for 1 GiB.
    pub fn memory_use(&self) -> Result<MemoryUse> {
        let mut found = sys::vellum_memory_use::new();
        // SAFETY: the handle is open, and the struct has its size.
        check(unsafe { sys::vellum_region_memory_use(self.handle(), &mut found) })?;
        Ok(MemoryUse {
            limit_bytes: found.limit_bytes,
            resident_bytes: found.resident_bytes,
            evicted_bytes: found.evicted_bytes,
            spilled_pages: found.spilled_pages,
            spill_file_bytes: found.spill_file_bytes,
            spill_written_bytes: found.spill_written_bytes,
            shared_bytes: found.shared_bytes,
        })
    }

    /// The address of a range. [`Error::InvalidArgument`] when it does not lie in the memory.
    pub(crate) fn address_of(&self, range: &Range<usize>) -> Result<*mut u8> {
        if range.start > range.end || range.end > self.size_bytes() {
            return Err(Error::InvalidArgument(format!(
                "bytes {}..{} of {:?}, which has {}",
                range.start,
                range.end,
                self.name(),
                self.size_bytes()
            )));
        }
        // SAFETY: the range lies in the mapping.
        Ok(unsafe { self.start().add(range.start) })
    }

    pub(crate) fn spans_of(&self, ranges: &[Range<usize>]) -> Result<Vec<sys::vellum_span>> {
        let span = |range: &Range<usize>| {
            let address: *const u8 = self.address_of(range)?;
            Ok(sys::vellum_span { address: address.cast(), length_bytes: range.len() })
        };
        ranges.iter().map(span).collect()
    }

    /// Loads a range. [`Error::Corrupted`] or [`Error::Io`] when a page cannot be read.
    pub fn prefetch(&self, range: Range<usize>) -> Result<()> {
        let address = self.address_of(&range)?;
        // SAFETY: the handle is open, and the range lies in its memory. No byte changes.
        check(unsafe { sys::vellum_prefetch(self.handle(), address.cast(), range.len()) })
    }

    /// The same for several ranges: all that they need from a remote is requested at once.
    pub fn prefetch_ranges(&self, ranges: &[Range<usize>]) -> Result<()> {
        let spans = self.spans_of(ranges)?;
        // SAFETY: the handle is open, and the spans are valid during the call. No byte changes.
        check(unsafe { sys::vellum_prefetch_ranges(self.handle(), spans.as_ptr(), spans.len()) })
    }

    /// Advice on the use of a range.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<()> {
        let number = match advice {
            Advice::Normal => sys::VELLUM_ADVICE_NORMAL,
            Advice::Sequential => sys::VELLUM_ADVICE_SEQUENTIAL,
            Advice::Random => sys::VELLUM_ADVICE_RANDOM,
            Advice::WillNeed => sys::VELLUM_ADVICE_WILL_NEED,
            Advice::DontNeed => sys::VELLUM_ADVICE_DONT_NEED,
        };
        let address = self.address_of(&range)?;
        // SAFETY: the handle is open, and the range lies in its memory. No byte changes: see vellum_advise().
        check(unsafe { sys::vellum_advise(self.handle(), address.cast(), range.len(), number) })
    }

    /// Loads a range, and keeps it in memory while the result lives: system calls work on it.
    pub fn pin(&self, range: Range<usize>) -> Result<Pinned<'_>> {
        let pin = self.pin_pages(&range)?;
        Ok(Pinned::new(&self.bytes()[range], pin))
    }

    pub(crate) fn pin_pages(&self, range: &Range<usize>) -> Result<Pin> {
        let address = self.address_of(range)?;
        // SAFETY: the handle is open, and the range lies in its memory. No byte changes.
        unsafe { Pin::open(|out| sys::vellum_pin_range(self.handle(), address.cast(), range.len(), out)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it after this. Slices, pins and transactions borrow
        // the `Memory` or its `Region`, so none is left; a transaction or a pin that was leaked keeps the
        // mapping.
        unsafe { sys::vellum_region_close(self.handle()) }
    }
}

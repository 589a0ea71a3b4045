//! Vellum: versioned memory. A region is a slice of bytes that survives crashes, commits atomically, and
//! keeps every version at the cost of the bytes that changed.
//!
//! ```
//! # fn main() -> vellum::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("vellum-doc-{}", std::process::id()));
//! let store = vellum::Store::open_or_create(&folder)?;
//! let mut region = store.open_or_create_region("main", 1 << 20)?;
//! region.bytes_mut()[0] += 1; // plain memory
//! region.commit("")?; // durable, all or nothing
//! region.snapshot("first", "a name to keep it")?;
//! region.bytes_mut()[0] = 9;
//! let first = store.open_version("first")?; // beside the live region
//! assert_eq!((region.bytes()[0], first.bytes()[0]), (9, 1));
//! # drop((region, first, store));
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! The words are those of the headers: a store is a directory; a branch is a line of versions with one
//! writer; a snapshot is a version with a name.
//!
//! # What does not compile
//!
//! A slice ends before its region or version is closed:
//!
//! ```no_run
//! # fn f(store: vellum::Store) -> vellum::Result<()> {
//! let version = store.open_version("first")?;
//! let bytes = version.bytes();
//! println!("{}", bytes[0]);
//! drop(version);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0505
//! # fn f(store: vellum::Store) -> vellum::Result<()> {
//! let version = store.open_version("first")?;
//! let bytes = version.bytes();
//! drop(version);
//! println!("{}", bytes[0]);
//! # Ok(())
//! # }
//! ```
//!
//! No slice outlives a rollback, a checkout, or another call that changes the region, nor is one written
//! during a commit:
//!
//! ```no_run
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let bytes = region.bytes();
//! println!("{}", bytes[0]);
//! region.rollback()?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0502
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let bytes = region.bytes();
//! region.rollback()?;
//! println!("{}", bytes[0]);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0502
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let bytes = region.bytes();
//! region.checkout("first", "")?;
//! println!("{}", bytes[0]);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0499
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let bytes = region.bytes_mut();
//! region.commit("")?;
//! bytes[0] = 1;
//! # Ok(())
//! # }
//! ```
//!
//! Only a region that is open to write gives bytes to write, and to one writer:
//!
//! ```compile_fail,E0599
//! # fn f(version: &mut vellum::Version) {
//! version.bytes_mut()[0] = 1;
//! # }
//! ```
//! ```compile_fail,E0596
//! # fn f(region: &vellum::Region) {
//! region.bytes_mut()[0] = 1;
//! # }
//! ```
//!
//! While a transaction is open, it has the region:
//!
//! ```no_run
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let mut transaction = region.begin()?;
//! transaction.bytes_mut()[0] = 1;
//! transaction.commit("")?;
//! region.bytes_mut()[0] = 2;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0499
//! # fn f(region: &mut vellum::Region) -> vellum::Result<()> {
//! let mut transaction = region.begin()?;
//! region.bytes_mut()[0] = 2;
//! transaction.commit("")?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0505
//! # fn f(mut region: vellum::Region) -> vellum::Result<()> {
//! let transaction = region.begin()?;
//! drop(region);
//! transaction.commit("")?;
//! # Ok(())
//! # }
//! ```
//!
//! Pinned bytes end before their region:
//!
//! ```compile_fail,E0505
//! # fn f(region: vellum::Region) -> vellum::Result<()> {
//! let pinned = region.pin(0..4096)?;
//! drop(region);
//! println!("{}", pinned[0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//!
//! Everything is `Send` and `Sync`: functions may be called from any thread, and what changes a region takes
//! `&mut Region`. In a child of fork(2) a touch of a region is a SIGSEGV; [`std::process::Command`] is not
//! affected.
#![warn(missing_docs)]
#![allow(clippy::missing_errors_doc)]

mod content;
mod error;
mod ffi;
mod memory;
mod options;
mod pending;
mod pinned;
mod region;
mod remotes;
mod report;
mod store;
mod transaction;
mod upkeep;
mod version;

pub use content::DiffTotals;
pub use error::{Error, Result};
pub use memory::{Advice, Memory, MemoryUse};
pub use options::{Compression, Encoding, Engine, RegionOptions, StoreOptions};
pub use pending::Pending;
pub use pinned::{Pinned, PinnedMut};
pub use region::Region;
pub use remotes::Remote;
pub use report::CommitReport;
pub use store::{Store, VersionInfo};
pub use transaction::Transaction;
pub use upkeep::{Damage, GcReport, Retention, RetentionPolicy, StoreStat};
pub use version::Version;

/// The version of the library that runs, such as `0.1.0`.
pub fn library_version() -> String {
    // SAFETY: the string is never NULL, and lasts.
    unsafe { ffi::text_of(vellum_sys::vellum_version()) }
}

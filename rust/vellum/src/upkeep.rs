//! The store as a whole: space, checks, retention.
use std::ffi::CString;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;
use std::slice;

use vellum_sys as sys;

use crate::error::{check, Error, Result};
use crate::ffi::{c_string, copy_of, text_of, Visitor};
use crate::store::Store;

/// The space that a store occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStat {
    /// On the medium.
    pub stored_bytes: u64,
    /// The number of snapshots.
    pub snapshots: u64,
    /// The number of branches.
    pub branches: u64,
    /// The size of sparse full copies of every snapshot and head.
    pub full_copy_bytes: u64,
    /// Of packs: bytes that a version needs, or has open.
    pub pack_needed_bytes: u64,
    /// Of packs: bytes that [`Store::collect_garbage`] would free.
    pub pack_freeable_bytes: u64,
}

/// The result of [`Store::collect_garbage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcReport {
    /// Of packs, before.
    pub pack_bytes: u64,
    /// Of them, record by record.
    pub needed_bytes: u64,
    /// Of them, in whole blocks that nothing needs.
    pub freeable_bytes: u64,
    /// 0 in a dry run.
    pub freed_bytes: u64,
}

/// An object that fails its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file, with the offset of the record if it is one.
    pub object: String,
    /// What is wrong.
    pub reason: String,
    /// The versions that need it.
    pub versions: Vec<String>,
}

/// How many snapshots each rule keeps; 0: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The newest ones.
    pub last: u32,
    /// The newest of each of the newest days that have any.
    pub daily: u32,
    /// The same of weeks, from Monday.
    pub weekly: u32,
    /// The same of months.
    pub monthly: u32,
    /// The same of years.
    pub yearly: u32,
    /// Only of this branch; otherwise of each branch separately.
    pub branch: Option<String>,
    /// Only snapshots whose names begin with it.
    pub prefix: Option<String>,
}

/// What a [`RetentionPolicy`] means for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// The snapshot's name.
    pub name: String,
    /// The rules that keep it (`last`, `daily`, ...); none: it is not kept.
    pub kept_by: Vec<String>,
}

/// The strings of an array of C.
///
/// # Safety
/// `texts` points to `count` strings, or `count` is 0.
unsafe fn texts_of(texts: *const *const c_char, count: usize) -> Vec<String> {
    if count == 0 {
        return Vec::new();
    }
    slice::from_raw_parts(texts, count).iter().map(|text| text_of(*text)).collect()
}

impl Store {
    /// The space that it occupies.
    pub fn stat(&self) -> Result<StoreStat> {
        let mut found = sys::vellum_store_stat::new();
        // SAFETY: the handle is open; the struct is valid during the call; there is no callback.
        check(unsafe { sys::vellum_stat(self.handle(), &mut found, None, ptr::null_mut()) })?;
        Ok(StoreStat {
            stored_bytes: found.stored_bytes,
            snapshots: found.snapshots,
            branches: found.branches,
            full_copy_bytes: found.full_copy_bytes,
            pack_needed_bytes: found.pack_needed_bytes,
            pack_freeable_bytes: found.pack_freeable_bytes,
        })
    }

    /// Frees the space of data that no version needs, beside readers and writers.
    pub fn collect_garbage(&self) -> Result<GcReport> {
        let mut found = sys::vellum_gc_report::new();
        // SAFETY: the handle is open; the struct is valid during the call; there is no callback.
        check(unsafe { sys::vellum_gc(self.handle(), ptr::null(), &mut found, None, ptr::null_mut()) })?;
        Ok(GcReport {
            pack_bytes: found.pack_bytes,
            needed_bytes: found.needed_bytes,
            freeable_bytes: found.freeable_bytes,
            freed_bytes: found.freed_bytes,
        })
    }

    /// Checks the store; with `read_data` every byte that a version needs. Damage is no error of the call.
    pub fn verify(&self, read_data: bool) -> Result<Vec<Damage>> {
        /// SAFETY: the library passes a damage, and the context below.
        unsafe extern "C" fn visit(damage: *const sys::vellum_damage, context: *mut c_void) {
            Visitor::<Vec<Damage>>::call(context, |all| {
                let damage = copy_of(damage);
                all.push(Damage {
                    object: text_of(damage.object),
                    reason: text_of(damage.reason),
                    versions: texts_of(damage.versions, damage.version_count),
                });
            });
        }
        let mut options = sys::vellum_verify_options::new();
        options.read_data = read_data.into();
        let mut visitor = Visitor::new(Vec::new());
        let context = visitor.context();
        // SAFETY: the handle is open; options and visitor are valid during the call. The report may be NULL.
        let result = check(unsafe {
            sys::vellum_verify(self.handle(), &options, ptr::null_mut(), Some(visit), None, context)
        });
        let found = visitor.finish();
        match result {
            Err(Error::Corrupted(_)) if !found.is_empty() => Ok(found),
            other => other.map(|()| found),
        }
    }

    /// What a policy would keep. It removes nothing.
    pub fn decide_retention(&self, policy: &RetentionPolicy) -> Result<Vec<Retention>> {
        // SAFETY: the handle is open; `visit_retention` gives arguments that are valid during the call.
        visit_retention(policy, |policy, visit, context| unsafe {
            sys::vellum_decide_retention(self.handle(), policy, visit, context)
        })
    }

    /// Removes the snapshots that no rule keeps, and returns what was decided.
    pub fn forget(&self, policy: &RetentionPolicy) -> Result<Vec<Retention>> {
        // SAFETY: as in `decide_retention`.
        visit_retention(policy, |policy, visit, context| unsafe {
            sys::vellum_forget(self.handle(), policy, visit, context)
        })
    }
}

fn visit_retention(
    policy: &RetentionPolicy,
    call: impl FnOnce(*const sys::vellum_retention_policy, sys::vellum_retention_fn, *mut c_void) -> c_int,
) -> Result<Vec<Retention>> {
    /// SAFETY: the library passes a version with strings, and the context below.
    unsafe extern "C" fn visit(
        snapshot: *const sys::vellum_version_info,
        kept_by: *const *const c_char,
        kept_by_count: usize,
        context: *mut c_void,
    ) -> c_int {
        let took = Visitor::<Vec<Retention>>::call(context, |all| {
            let name = text_of(copy_of(snapshot).name);
            all.push(Retention { name, kept_by: texts_of(kept_by, kept_by_count) });
        });
        c_int::from(took.is_none())
    }
    let optional = |text: &Option<String>| text.as_deref().map(c_string).transpose();
    let (branch, prefix): (Option<CString>, Option<CString>) =
        (optional(&policy.branch)?, optional(&policy.prefix)?);
    let mut given = sys::vellum_retention_policy::new();
    given.keep_last = policy.last;
    given.keep_daily = policy.daily;
    given.keep_weekly = policy.weekly;
    given.keep_monthly = policy.monthly;
    given.keep_yearly = policy.yearly;
    given.branch = branch.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    given.prefix = prefix.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    let mut visitor = Visitor::new(Vec::new());
    let result = check(call(&given, Some(visit), visitor.context()));
    let found = visitor.finish();
    result.map(|()| found)
}

//! The functions.
use std::os::raw::{c_char, c_int, c_void};

use crate::types::*;

functions! {
    fn vellum_errc_name(code: c_int) -> *const c_char;
    fn vellum_error_message() -> *const c_char;
    fn vellum_version() -> *const c_char;
    fn vellum_store_create(
        path: *const c_char,
        options: *const vellum_store_options,
        out: *mut *mut vellum_store,
    ) -> c_int;
    fn vellum_store_open(path: *const c_char, out: *mut *mut vellum_store) -> c_int;
    fn vellum_store_open_remote(
        url: *const c_char,
        options: *const vellum_remote_options,
        out: *mut *mut vellum_store,
    ) -> c_int;
    fn vellum_set_key_source(source: *const vellum_key_source) -> c_int;
    fn vellum_set_sign_key_file(path: *const c_char) -> c_int;
    fn vellum_store_open_or_create(
        path: *const c_char,
        options: *const vellum_store_options,
        out: *mut *mut vellum_store,
    ) -> c_int;
    fn vellum_store_close(store: *mut vellum_store);
    fn vellum_store_path(store: *const vellum_store) -> *const c_char;
    fn vellum_store_get_options(
        store: *const vellum_store,
        options: *mut vellum_store_options,
    ) -> c_int;
    fn vellum_store_id(store: *const vellum_store, id: *mut c_char) -> c_int;
    fn vellum_engine_name(engine: c_int) -> *const c_char;
    fn vellum_region_create(
        store: *mut vellum_store,
        branch: *const c_char,
        size_bytes: u64,
        options: *const vellum_region_options,
        out: *mut *mut vellum_region,
    ) -> c_int;
    fn vellum_region_open(
        store: *mut vellum_store,
        branch: *const c_char,
        options: *const vellum_region_options,
        out: *mut *mut vellum_region,
    ) -> c_int;
    fn vellum_region_open_or_create(
        store: *mut vellum_store,
        branch: *const c_char,
        size_bytes: u64,
        options: *const vellum_region_options,
        out: *mut *mut vellum_region,
    ) -> c_int;
    fn vellum_region_open_version(
        store: *mut vellum_store,
        name: *const c_char,
        options: *const vellum_region_options,
        out: *mut *mut vellum_region,
    ) -> c_int;
    fn vellum_region_close(region: *mut vellum_region);
    fn vellum_region_close_and_leave_memory(region: *mut vellum_region) -> c_int;
    fn vellum_region_data(region: *const vellum_region) -> *mut c_void;
    fn vellum_region_size(region: *const vellum_region) -> u64;
    fn vellum_region_capacity(region: *const vellum_region) -> u64;
    fn vellum_region_writable(region: *const vellum_region) -> c_int;
    fn vellum_region_sequence(region: *const vellum_region) -> u64;
    fn vellum_region_engine(region: *const vellum_region) -> c_int;
    fn vellum_region_serves_system_calls(region: *const vellum_region) -> c_int;
    fn vellum_region_name(region: *const vellum_region) -> *const c_char;
    fn vellum_region_memory_use(region: *const vellum_region, used: *mut vellum_memory_use) -> c_int;
    fn vellum_commit(
        region: *mut vellum_region,
        message: *const c_char,
        report: *mut vellum_commit_report,
    ) -> c_int;
    fn vellum_commit_ranges(
        region: *mut vellum_region,
        written: *const vellum_span,
        count: usize,
        message: *const c_char,
        report: *mut vellum_commit_report,
    ) -> c_int;
    fn vellum_snapshot(
        region: *mut vellum_region,
        name: *const c_char,
        message: *const c_char,
        report: *mut vellum_commit_report,
    ) -> c_int;
    fn vellum_commit_async(
        region: *mut vellum_region,
        message: *const c_char,
        out: *mut *mut vellum_pending,
    ) -> c_int;
    fn vellum_snapshot_async(
        region: *mut vellum_region,
        name: *const c_char,
        message: *const c_char,
        out: *mut *mut vellum_pending,
    ) -> c_int;
    fn vellum_pending_ended(pending: *const vellum_pending) -> c_int;
    fn vellum_wait(pending: *mut vellum_pending, report: *mut vellum_commit_report) -> c_int;
    fn vellum_rollback(region: *mut vellum_region) -> c_int;
    fn vellum_checkout(
        region: *mut vellum_region,
        version: *const c_char,
        message: *const c_char,
        report: *mut vellum_commit_report,
    ) -> c_int;
    fn vellum_drop_copies(
        region: *mut vellum_region,
        spans: *const vellum_span,
        count: usize,
    ) -> c_int;
    fn vellum_begin(region: *mut vellum_region, out: *mut *mut vellum_transaction) -> c_int;
    fn vellum_transaction_commit(
        transaction: *mut vellum_transaction,
        message: *const c_char,
        report: *mut vellum_commit_report,
    ) -> c_int;
    fn vellum_transaction_rollback(transaction: *mut vellum_transaction) -> c_int;
    fn vellum_transaction_is_open(transaction: *const vellum_transaction) -> c_int;
    fn vellum_transaction_close(transaction: *mut vellum_transaction);
    fn vellum_grow(region: *mut vellum_region, size_bytes: u64) -> c_int;
    fn vellum_region_file_size(region: *const vellum_region) -> u64;
    fn vellum_resize_file(region: *mut vellum_region, file_bytes: u64, room_bytes: u64) -> c_int;
    fn vellum_pin_range(
        region: *const vellum_region,
        address: *const c_void,
        length_bytes: usize,
        out: *mut *mut vellum_pin,
    ) -> c_int;
    fn vellum_unpin(pin: *mut vellum_pin);
    fn vellum_zero(region: *mut vellum_region, address: *mut c_void, length_bytes: usize) -> c_int;
    fn vellum_prefetch(
        region: *const vellum_region,
        address: *const c_void,
        length_bytes: usize,
    ) -> c_int;
    fn vellum_prefetch_ranges(
        region: *const vellum_region,
        spans: *const vellum_span,
        count: usize,
    ) -> c_int;
    fn vellum_advise(
        region: *const vellum_region,
        address: *const c_void,
        length_bytes: usize,
        advice: c_int,
    ) -> c_int;
    fn vellum_versions(
        store: *const vellum_store,
        visit: vellum_version_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_find_version(
        store: *const vellum_store,
        name: *const c_char,
        visit: vellum_version_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_create_branch(
        store: *mut vellum_store,
        name: *const c_char,
        from_version: *const c_char,
        encoding: *const vellum_encoding,
    ) -> c_int;
    fn vellum_create_snapshot(
        store: *mut vellum_store,
        name: *const c_char,
        from_version: *const c_char,
        message: *const c_char,
    ) -> c_int;
    fn vellum_convert_to_branch(store: *mut vellum_store, name: *const c_char) -> c_int;
    fn vellum_rename_branch(
        store: *mut vellum_store,
        from: *const c_char,
        to: *const c_char,
    ) -> c_int;
    fn vellum_remove(store: *mut vellum_store, name: *const c_char) -> c_int;
    fn vellum_find_branch_image(
        store: *const vellum_store,
        branch: *const c_char,
        visit: vellum_branch_image_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_decide_retention(
        store: *const vellum_store,
        policy: *const vellum_retention_policy,
        visit: vellum_retention_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_forget(
        store: *mut vellum_store,
        policy: *const vellum_retention_policy,
        visit: vellum_retention_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_resolve(
        store: *const vellum_store,
        version: *const c_char,
        name: *mut c_char,
        name_bytes: usize,
    ) -> c_int;
    fn vellum_diff(
        store: *const vellum_store,
        a: *const c_char,
        b: *const c_char,
        visit: vellum_range_fn,
        context: *mut c_void,
        totals: *mut vellum_diff_totals,
    ) -> c_int;
    fn vellum_diff_bytes(
        store: *const vellum_store,
        a: *const c_char,
        b: *const c_char,
        granularity_bytes: u64,
        visit: vellum_diff_range_fn,
        context: *mut c_void,
        totals: *mut vellum_diff_totals,
    ) -> c_int;
    fn vellum_read(
        store: *const vellum_store,
        name: *const c_char,
        offset_bytes: u64,
        buffer: *mut c_void,
        length_bytes: usize,
    ) -> c_int;
    fn vellum_export(
        store: *const vellum_store,
        name: *const c_char,
        file: *const c_char,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_import(
        store: *mut vellum_store,
        branch: *const c_char,
        file: *const c_char,
        message: *const c_char,
        report: *mut vellum_commit_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_import_stream(
        store: *mut vellum_store,
        branch: *const c_char,
        read: vellum_read_fn,
        expected_bytes: u64,
        message: *const c_char,
        report: *mut vellum_commit_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_import_version(
        store: *mut vellum_store,
        branch: *const c_char,
        from: *const vellum_store,
        name: *const c_char,
        message: *const c_char,
        report: *mut vellum_commit_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_stat(
        store: *const vellum_store,
        stat: *mut vellum_store_stat,
        visit: vellum_version_space_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_gc(
        store: *mut vellum_store,
        options: *const vellum_gc_options,
        report: *mut vellum_gc_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_verify(
        store: *const vellum_store,
        options: *const vellum_verify_options,
        report: *mut vellum_verify_report,
        visit: vellum_damage_fn,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_repair(
        path: *const c_char,
        destination: *const c_char,
        options: *const vellum_repair_options,
        report: *mut vellum_repair_report,
        visit: vellum_repair_fn,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_tiers(
        store: *const vellum_store,
        visit: vellum_tier_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_add_archive(store: *mut vellum_store, directory: *const c_char) -> c_int;
    fn vellum_add_cache(
        store: *mut vellum_store,
        directory: *const c_char,
        limit_bytes: u64,
    ) -> c_int;
    fn vellum_remove_tier(store: *mut vellum_store, directory: *const c_char) -> c_int;
    fn vellum_limit_tier(
        store: *mut vellum_store,
        directory: *const c_char,
        limit_bytes: u64,
    ) -> c_int;
    fn vellum_move_packs(
        store: *mut vellum_store,
        how: *const vellum_tier_move,
        report: *mut vellum_tier_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_apply_tiers(
        store: *mut vellum_store,
        options: *const vellum_apply_tiers_options,
        report: *mut vellum_tier_report,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_remotes(
        store: *const vellum_store,
        visit: vellum_remote_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_add_remote(
        store: *mut vellum_store,
        name: *const c_char,
        url: *const c_char,
        options: *const vellum_add_remote_options,
    ) -> c_int;
    fn vellum_remove_remote(store: *mut vellum_store, name: *const c_char) -> c_int;
    fn vellum_push(
        store: *mut vellum_store,
        remote: *const c_char,
        options: *const vellum_push_options,
        report: *mut vellum_push_report,
        visit: vellum_moved_fn,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_replicate(
        store: *mut vellum_store,
        url: *const c_char,
        options: *const vellum_replicate_options,
        told: vellum_replicate_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_pull(
        store: *mut vellum_store,
        remote: *const c_char,
        options: *const vellum_pull_options,
        report: *mut vellum_pull_report,
        visit: vellum_moved_fn,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_clone(
        url: *const c_char,
        directory: *const c_char,
        options: *const vellum_pull_options,
        report: *mut vellum_pull_report,
        visit: vellum_moved_fn,
        progress: vellum_progress_fn,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_group_version_open(
        records: *const c_char,
        version: *const c_char,
        stores: *const c_char,
        out: *mut *mut vellum_group_version,
    ) -> c_int;
    fn vellum_group_version_open_remote(
        url: *const c_char,
        version: *const c_char,
        options: *const vellum_remote_options,
        out: *mut *mut vellum_group_version,
    ) -> c_int;
    fn vellum_group_version_close(version: *mut vellum_group_version);
    fn vellum_group_version_number(version: *const vellum_group_version) -> u64;
    fn vellum_group_version_partitions(version: *const vellum_group_version) -> u32;
    fn vellum_group_version_open_partition(
        version: *const vellum_group_version,
        partition: u32,
        options: *const vellum_region_options,
        out: *mut *mut vellum_region,
    ) -> c_int;
}

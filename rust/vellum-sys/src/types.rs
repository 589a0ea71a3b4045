//! Handles, callbacks and structs.
use std::os::raw::{c_char, c_int, c_void};

opaque! {
    vellum_store;
    vellum_region;
    vellum_pending;
    vellum_transaction;
    vellum_pin;
    vellum_group_version;
}

callbacks! {
    fn vellum_progress_fn(
        done: u64,
        total: u64,
        unit: *const c_char,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_version_fn(version: *const vellum_version_info, context: *mut c_void) -> c_int;
    fn vellum_branch_image_fn(image: *const vellum_branch_image, context: *mut c_void);
    fn vellum_retention_fn(
        snapshot: *const vellum_version_info,
        kept_by: *const *const c_char,
        kept_by_count: usize,
        context: *mut c_void,
    ) -> c_int;
    fn vellum_range_fn(range: *const vellum_byte_range, context: *mut c_void) -> c_int;
    fn vellum_diff_range_fn(range: *const vellum_diff_range, context: *mut c_void) -> c_int;
    fn vellum_read_fn(to: *mut c_void, capacity_bytes: usize, context: *mut c_void) -> i64;
    fn vellum_version_space_fn(space: *const vellum_version_space, context: *mut c_void);
    fn vellum_damage_fn(damage: *const vellum_damage, context: *mut c_void);
    fn vellum_repair_fn(version: *const vellum_repaired_version, context: *mut c_void);
    fn vellum_tier_fn(tier: *const vellum_tier, context: *mut c_void);
    fn vellum_remote_fn(remote: *const vellum_remote_info, context: *mut c_void);
    fn vellum_moved_fn(version: *const vellum_moved_version, context: *mut c_void);
    fn vellum_replicate_fn(state: *const vellum_replicate_state, context: *mut c_void) -> c_int;
}

structs! {
    struct vellum_encoding {
        struct_size: usize,
        compression: c_int,
        compression_level: c_int,
        block_bytes: u32,
        fixed_blocks: c_int,
        no_filters: c_int,
        no_dedup: c_int,
        no_deltas: c_int,
        hash: c_int,
    }
    struct vellum_store_options {
        struct_size: usize,
        encoding: *const vellum_encoding,
        pack_bytes: u64,
        journal_half_bytes: u32,
        encrypt: c_int,
    }
    struct vellum_key_source {
        struct_size: usize,
        passphrase_file: *const c_char,
        key_file: *const c_char,
        identity_file: *const c_char,
        recipient: *const c_char,
        command: *const c_char,
        fingerprint: *const c_char,
        encrypted_only: c_int,
    }
    struct vellum_remote_options {
        struct_size: usize,
        cache_directory: *const c_char,
        cache_bytes: u64,
        longest_wait_ms: u64,
    }
    struct vellum_region_options {
        struct_size: usize,
        engine: c_int,
        fixed_address: c_int,
        capacity_bytes: u64,
        base_address: u64,
        encode_threads: c_int,
        encoding: *const vellum_encoding,
        image_path: *const c_char,
        memory_limit_bytes: u64,
        spill_directory: *const c_char,
        fault_bytes: u32,
        huge_pages: c_int,
        working_set: c_int,
        over_reservation: c_int,
        tracker: c_int,
        verify_cards: c_int,
        no_background_gc: c_int,
        image_is_content: c_int,
        keep_copies: c_int,
        fault_thread: c_int,
        share: c_int,
    }
    struct vellum_memory_use {
        struct_size: usize,
        limit_bytes: u64,
        resident_bytes: u64,
        evicted_bytes: u64,
        spilled_pages: u64,
        spill_file_bytes: u64,
        spill_written_bytes: u64,
        shared_bytes: u64,
    }
    struct vellum_span {
        address: *const c_void,
        length_bytes: usize,
    }
    struct vellum_commit_report {
        struct_size: usize,
        sequence: u64,
        pages_dirty: u64,
        pages_changed: u64,
        bytes_written: u64,
        scan_ns: u64,
        encode_ns: u64,
        write_ns: u64,
        flush_ns: u64,
        publish_ns: u64,
        total_ns: u64,
        checkpointed: c_int,
        pause_ns: u64,
    }
    struct vellum_version_info {
        struct_size: usize,
        name: *const c_char,
        is_branch: c_int,
        branch: *const c_char,
        message: *const c_char,
        parent: *const c_char,
        sequence: u64,
        time_ns: i64,
        region_bytes: u64,
        pages_changed: u64,
        bytes_added: u64,
        encoding: *const vellum_encoding,
        file_bytes: u64,
        created_ns: i64,
        order: u64,
    }
    struct vellum_branch_image {
        struct_size: usize,
        path: *const c_char,
        in_use: c_int,
        changed: c_int,
    }
    struct vellum_retention_policy {
        struct_size: usize,
        keep_last: u32,
        keep_daily: u32,
        keep_weekly: u32,
        keep_monthly: u32,
        keep_yearly: u32,
        branch: *const c_char,
        prefix: *const c_char,
    }
    struct vellum_byte_range {
        offset_bytes: u64,
        length_bytes: u64,
    }
    struct vellum_diff_totals {
        struct_size: usize,
        pages_compared: u64,
        pages_different: u64,
        bytes_different: u64,
        ranges: u64,
    }
    struct vellum_diff_range {
        range: vellum_byte_range,
        a: *const c_void,
        b: *const c_void,
    }
    struct vellum_store_stat {
        struct_size: usize,
        stored_bytes: u64,
        pack_bytes: u64,
        journal_bytes: u64,
        ref_bytes: u64,
        packs: u64,
        snapshots: u64,
        branches: u64,
        full_copy_bytes: u64,
        pack_needed_bytes: u64,
        pack_freeable_bytes: u64,
        archive_packs: u64,
        archive_bytes: u64,
        cache_copies: u64,
        cache_bytes: u64,
    }
    struct vellum_version_space {
        struct_size: usize,
        name: *const c_char,
        is_branch: c_int,
        region_bytes: u64,
        nonzero_bytes: u64,
        unique_bytes: u64,
        shared_bytes: u64,
    }
    struct vellum_gc_options {
        struct_size: usize,
        dry_run: c_int,
        recompress_level: c_int,
    }
    struct vellum_gc_report {
        struct_size: usize,
        snapshots: u64,
        branches: u64,
        open_versions: u64,
        packs: u64,
        packs_removed: u64,
        packs_punched: u64,
        copies_removed: u64,
        pack_bytes: u64,
        needed_bytes: u64,
        freeable_bytes: u64,
        freed_bytes: u64,
        holes_supported: c_int,
        packs_recompressed: u64,
        recompressed_from_bytes: u64,
        recompressed_to_bytes: u64,
        packs_in_use: u64,
    }
    struct vellum_verify_options {
        struct_size: usize,
        read_data: c_int,
    }
    struct vellum_verify_report {
        struct_size: usize,
        versions: u64,
        packs: u64,
        records: u64,
        bytes_read: u64,
        damages: u64,
    }
    struct vellum_damage {
        struct_size: usize,
        object: *const c_char,
        reason: *const c_char,
        versions: *const *const c_char,
        version_count: usize,
    }
    struct vellum_repair_options {
        struct_size: usize,
        dry_run: c_int,
        include_removed: c_int,
    }
    struct vellum_repair_report {
        struct_size: usize,
        saved: u64,
        exact: u64,
        lost: u64,
        pages_written: u64,
    }
    struct vellum_repaired_version {
        struct_size: usize,
        name: *const c_char,
        reason: *const c_char,
        origin: *const c_char,
        is_branch: c_int,
        exact: c_int,
        sequence: u64,
        region_bytes: u64,
    }
    struct vellum_tier {
        struct_size: usize,
        kind: c_int,
        directory: *const c_char,
        present: c_int,
        writable: c_int,
        packs: u64,
        bytes: u64,
        limit_bytes: u64,
    }
    struct vellum_tier_move {
        struct_size: usize,
        to_home: c_int,
        has_home_bytes: c_int,
        home_bytes: u64,
        keep_last: u64,
        dry_run: c_int,
    }
    struct vellum_tier_report {
        struct_size: usize,
        packs_moved: u64,
        moved_bytes: u64,
        packs_in_use: u64,
        copies_made: u64,
        copied_bytes: u64,
        copies_removed: u64,
        home_bytes: u64,
    }
    struct vellum_apply_tiers_options {
        struct_size: usize,
        dry_run: c_int,
    }
    struct vellum_remote_info {
        struct_size: usize,
        name: *const c_char,
        url: *const c_char,
        one_writer: c_int,
        lock_s: u64,
    }
    struct vellum_add_remote_options {
        struct_size: usize,
        one_writer: c_int,
        lock_s: u64,
    }
    struct vellum_moved_version {
        struct_size: usize,
        name: *const c_char,
        is_branch: c_int,
        was_there: c_int,
        is_ahead: c_int,
        epoch: u64,
    }
    struct vellum_push_options {
        struct_size: usize,
        versions: *const *const c_char,
        take_over: c_int,
        dry_run: c_int,
    }
    struct vellum_push_report {
        struct_size: usize,
        objects_uploaded: u64,
        bytes_uploaded: u64,
        pieces_used_again: u64,
    }
    struct vellum_replicate_options {
        struct_size: usize,
        interval_ms: u64,
        take_over: c_int,
    }
    struct vellum_replicate_state {
        struct_size: usize,
        pushes: u64,
        versions: u64,
        bytes_uploaded: u64,
        behind_ms: u64,
        failure: *const c_char,
    }
    struct vellum_pull_options {
        struct_size: usize,
        versions: *const *const c_char,
        lazy: c_int,
        packs: c_int,
        take_over: c_int,
        dry_run: c_int,
    }
    struct vellum_pull_report {
        struct_size: usize,
        pieces_read: u64,
        bytes_read: u64,
    }
}

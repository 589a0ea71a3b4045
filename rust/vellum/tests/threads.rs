//! Threads: parts of a region, versions beside its commits, handles that move.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use crate::support::Folder;
use vellum::{Memory, Pending, Pinned, PinnedMut, Region, RegionOptions, Store, Transaction, Version};

const PAGE: usize = 4096;

#[test]
fn handles_are_send_and_sync() {
    fn is<T: Send + Sync>() {}
    is::<Store>();
    is::<Region>();
    is::<Version>();
    is::<Memory>();
    is::<Pending>();
    is::<Transaction<'_>>();
    is::<Pinned<'_>>();
    is::<PinnedMut<'_>>();
    is::<RegionOptions>();
    is::<vellum::Error>();
}

#[test]
fn threads_write_parts() {
    let folder = Folder::new("parts");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 1024 * PAGE as u64).unwrap();
    for round in 1..=3 {
        thread::scope(|scope| {
            for (number, part) in region.bytes_mut().chunks_mut(256 * PAGE).enumerate() {
                scope.spawn(move || part.fill(number as u8 * 10 + round));
            }
        });
        region.commit("").unwrap();
    }
    drop(region);
    let version = store.open_version("main").unwrap();
    let expected = |index: usize| (index / (256 * PAGE)) as u8 * 10 + 3;
    assert!(version.bytes().iter().enumerate().all(|(index, byte)| *byte == expected(index)));
}

#[test]
fn versions_are_read_while_the_region_commits() {
    let folder = Folder::new("readers");
    let store = Arc::new(Store::create(folder.store()).unwrap());
    let mut region = store.create_region("main", 64 * PAGE as u64).unwrap();
    region.bytes_mut().fill(1);
    region.snapshot("one", "").unwrap();
    let done = AtomicBool::new(false);
    let shared = store.open_version("one").unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(shared.bytes().iter().all(|byte| *byte == 1));
                    let head = store.open_version("main").unwrap(); // one commit, whole
                    assert!(head.bytes().iter().all(|byte| *byte == head.bytes()[0]));
                }
            });
        }
        for number in 2..=50 {
            region.bytes_mut().fill(number);
            region.commit("").unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_region_moves_to_another_thread() {
    let folder = Folder::new("moves");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", PAGE as u64).unwrap();
    let mut region = thread::spawn(move || {
        region.bytes_mut()[0] = 1;
        let pending = region.commit_async("").unwrap();
        (region, pending)
    })
    .join()
    .map(|(region, pending)| {
        pending.wait().unwrap();
        region
    })
    .unwrap();
    drop(store);
    region.bytes_mut()[1] = 2;
    region.commit("").unwrap();
    assert_eq!(region.bytes()[..2], [1, 2]);
}

/// A region larger than its memory: other threads' reads and writes evict and load the pages.
#[test]
fn eviction_changes_no_byte() {
    let folder = Folder::new("eviction");
    let store = Store::create(folder.store()).unwrap();
    let options = RegionOptions::new().memory_limit_bytes(2 << 20);
    let mut region = options.create(&store, "main", 8 << 20).unwrap();
    for round in 1..=2_u8 {
        thread::scope(|scope| {
            for part in region.bytes_mut().chunks_mut(2 << 20) {
                scope.spawn(move || {
                    for (index, byte) in part.iter_mut().enumerate().step_by(64) {
                        *byte = (index / PAGE) as u8 ^ round;
                    }
                });
            }
        });
        let bytes = region.bytes();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for (index, byte) in bytes.iter().enumerate().step_by(64) {
                        assert_eq!(*byte, (index % (2 << 20) / PAGE) as u8 ^ round);
                    }
                });
            }
        });
        if round == 1 {
            region.commit("").unwrap();
        }
    }
    assert!(region.memory_use().unwrap().evicted_bytes > 0);
}

//! Differences, plain files, checks, retention, remotes.
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::support::Folder;
use vellum::{Error, RetentionPolicy, Store};

const PAGE: usize = 4096;

/// A store with the snapshots `a`, and `b` with other bytes at 10..13 and at PAGE.
fn two_versions(folder: &Folder) -> Store {
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 2 * PAGE as u64).unwrap();
    region.snapshot("a", "").unwrap();
    region.bytes_mut()[10..13].copy_from_slice(&[1, 2, 3]);
    region.bytes_mut()[PAGE] = 4;
    region.snapshot("b", "").unwrap();
    store
}

#[test]
fn differences_are_ranges() {
    let folder = Folder::new("diff");
    let store = two_versions(&folder);
    let mut ranges = Vec::new();
    let totals = store.diff("a", "b", |range| {
        ranges.push(range);
        ControlFlow::Continue(())
    });
    assert_eq!(ranges, [10..13, 4096..4097]);
    assert_eq!(totals.unwrap().bytes_different, 4);
    let mut both = Vec::new();
    let result = store.diff_bytes("a", "b", 4, |range, a, b| {
        both.push((range, a.to_vec(), b.to_vec()));
        ControlFlow::Break(()) // ends it, without an error
    });
    assert_eq!(both, [(8..16, vec![0; 8], vec![0, 0, 1, 2, 3, 0, 0, 0])]);
    result.unwrap();
}

/// Closures need not be `Send`: the library calls them in the thread of the call, also where it uses others.
#[test]
fn closures_are_called_in_the_thread_of_the_call() {
    let folder = Folder::new("closures");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 4096 * PAGE as u64).unwrap();
    region.snapshot("a", "").unwrap();
    for (index, byte) in region.bytes_mut().iter_mut().enumerate().step_by(PAGE) {
        *byte = (index / PAGE) as u8 | 1;
    }
    region.snapshot("b", "").unwrap();
    let caller = std::thread::current().id();
    let mut calls = 0;
    let mut count = || {
        assert_eq!(std::thread::current().id(), caller);
        calls += 1;
        ControlFlow::Continue(())
    };
    store.diff("a", "b", |_| count()).unwrap();
    store.diff_bytes("a", "b", PAGE as u64, |_, _, _| count()).unwrap();
    assert!(calls > 4096, "{calls}");
}

#[test]
fn a_panic_in_a_callback_goes_through() {
    let folder = Folder::new("panic");
    let store = two_versions(&folder);
    let result =
        catch_unwind(AssertUnwindSafe(|| store.diff("a", "b", |range| panic!("at {}", range.start))));
    assert_eq!(result.unwrap_err().downcast_ref::<String>().unwrap(), "at 10");
    assert!(store.diff("a", "b", |_| ControlFlow::Continue(())).is_ok());
}

#[test]
fn bytes_files_and_stores_are_exchanged() {
    let folder = Folder::new("files");
    let store = two_versions(&folder);
    let mut buffer = [0; 3];
    store.read("b", 10, &mut buffer).unwrap();
    assert_eq!(buffer, [1, 2, 3]);
    let file = folder.path().join("file");
    store.export("b", &file).unwrap();
    let other = Store::create(folder.path().join("other")).unwrap();
    other.import("file", &file, "from a file").unwrap();
    other.import_version("version", &store, "b", "").unwrap();
    let (one, two) = (other.open_version("file").unwrap(), other.open_version("version").unwrap());
    assert_eq!((one.bytes()[11], two.bytes()[PAGE]), (2, 4));
    assert!(matches!(store.read("b", 2 * PAGE as u64, &mut buffer), Err(Error::InvalidArgument(_))));
}

#[test]
fn damage_is_named() {
    let folder = Folder::new("damage");
    let store = two_versions(&folder);
    assert_eq!(store.verify(true).unwrap(), []);
    assert_eq!((store.stat().unwrap().snapshots, store.stat().unwrap().branches), (2, 1));
    store.collect_garbage().unwrap();
    let snapshot =
        files_of(&folder.store()).into_iter().find(|path| path.file_stem() == Some("a".as_ref())).unwrap();
    let mut bytes = std::fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let damages = store.verify(true).unwrap();
    assert!(damages.iter().any(|damage| damage.object.contains(snapshot.to_str().unwrap())), "{damages:?}");
    assert!(matches!(store.open_version("a"), Err(Error::Corrupted(_))));
}

fn files_of(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_policy_keeps_the_last() {
    let folder = Folder::new("forget");
    let store = two_versions(&folder);
    let policy = RetentionPolicy { last: 1, ..RetentionPolicy::default() };
    let decided = store.decide_retention(&policy).unwrap();
    let kept: Vec<_> = decided.iter().map(|each| (each.name.as_str(), each.kept_by.len())).collect();
    assert_eq!(kept, [("b", 1), ("a", 0)]);
    assert_eq!(store.forget(&policy).unwrap(), decided);
    assert!(matches!(store.version("a"), Err(Error::NotFound(_))));
    let nothing = store.forget(&RetentionPolicy::default());
    assert!(matches!(nothing, Err(Error::InvalidArgument(_))));
}

#[test]
fn versions_go_through_a_remote() {
    let folder = Folder::new("remote");
    let store = two_versions(&folder);
    let url = format!("file://{}", folder.path().join("remote").display());
    std::fs::create_dir(folder.path().join("remote")).unwrap();
    store.add_remote("origin", &url).unwrap();
    assert_eq!(store.remotes().unwrap()[0].url, url);
    store.push("origin", &["a", "b"]).unwrap();
    let clone = Store::clone_remote(&url, folder.path().join("clone"), true).unwrap();
    assert_eq!(clone.open_version("b").unwrap().bytes()[PAGE], 4);
    store.push("origin", &[]).unwrap();
    clone.pull("origin", &[]).unwrap();
    assert!(clone.version("main").unwrap().is_branch);
    assert_eq!(Store::open(&url).unwrap().open_version("a").unwrap().bytes()[10], 0);
    store.remove_remote("origin").unwrap();
    assert!(store.remotes().unwrap().is_empty());
}

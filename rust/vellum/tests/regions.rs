//! Round trips: commits, snapshots, versions beside the live region, rollback, checkout, transactions, pins.
use std::fs::File;
use std::io::{Read, Write};

use crate::support::Folder;
use vellum::{Advice, Encoding, Engine, Error, RegionOptions, Store, StoreOptions};

const PAGE: usize = 4096;

#[test]
fn a_commit_is_there_at_the_next_opening() {
    let folder = Folder::new("round-trip");
    {
        let store = Store::create(folder.store()).unwrap();
        let mut region = store.create_region("main", 3 * PAGE as u64).unwrap();
        assert_eq!(region.bytes(), [0; 3 * PAGE]);
        region.bytes_mut()[PAGE + 1] = 7;
        let report = region.commit("seven").unwrap();
        assert_eq!((report.pages_changed, report.sequence), (1, region.sequence()));
        region.bytes_mut()[0] = 1; // not committed
    }
    let store = Store::open(folder.store()).unwrap();
    let region = store.open_region("main").unwrap();
    assert_eq!((region.size_bytes(), region.bytes()[0], region.bytes()[PAGE + 1]), (3 * PAGE, 0, 7));
    assert_eq!((region.name(), store.version("main").unwrap().message), ("main".into(), "seven".into()));
    assert_eq!((store.path(), store.id().unwrap().len()), (folder.store(), 32));
}

#[test]
fn versions_stay_beside_the_live_region() {
    let folder = Folder::new("versions");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 64 * PAGE as u64).unwrap();
    for number in 1..=5_u8 {
        region.bytes_mut().fill(number);
        region.snapshot(&format!("v{number}"), "").unwrap();
    }
    region.bytes_mut().fill(99);
    let versions: Vec<_> = (1..=5).map(|i| store.open_version(&format!("v{i}")).unwrap()).collect();
    store.remove("v2").unwrap(); // it is open, and stays readable
    drop(region);
    drop(store);
    for (index, version) in versions.iter().enumerate() {
        assert!(version.bytes().iter().all(|byte| usize::from(*byte) == index + 1), "{}", version.name());
    }
}

#[test]
fn names_list_and_resolve() {
    let folder = Folder::new("names");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", PAGE as u64).unwrap();
    region.bytes_mut()[0] = 1;
    region.snapshot("a", "first").unwrap();
    region.bytes_mut()[0] = 2;
    region.snapshot("b", "second").unwrap();
    store.create_branch("side", "a").unwrap();
    store.create_snapshot("c", "side", "third").unwrap();
    let names: Vec<_> = store.versions().unwrap().into_iter().map(|each| each.name).collect();
    assert_eq!(names, ["a", "b", "c", "main", "side"]);
    let b = store.version("b").unwrap();
    assert_eq!((b.is_branch, b.branch.as_str(), b.parent.as_str()), (false, "main", "a"));
    assert!(b.created_at <= std::time::SystemTime::now() && b.region_bytes == PAGE as u64);
    assert_eq!((store.resolve("main~2").unwrap(), store.resolve("b~").unwrap()), ("a".into(), "a".into()));
    store.remove("c").unwrap();
    assert!(matches!(store.version("c"), Err(Error::NotFound(_))));
    store.convert_to_branch("b").unwrap();
    assert!(store.version("b").unwrap().is_branch);
}

#[test]
fn rollback_and_checkout_restore() {
    let folder = Folder::new("undo");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", PAGE as u64).unwrap();
    region.bytes_mut()[0] = 1;
    region.snapshot("one", "").unwrap();
    region.bytes_mut()[0] = 2;
    region.rollback().unwrap();
    assert_eq!(region.bytes()[0], 1);
    region.bytes_mut()[0] = 3;
    region.snapshot("three", "").unwrap();
    region.checkout("one", "undo").unwrap();
    assert_eq!(region.bytes()[0], 1);
    region.checkout("three", "redo").unwrap();
    assert_eq!(region.bytes()[0], 3);
}

#[test]
fn a_transaction_commits_or_rolls_back() {
    let folder = Folder::new("transaction");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", PAGE as u64).unwrap();
    let mut transaction = region.begin().unwrap();
    transaction.bytes_mut()[0] = 1;
    transaction.commit("").unwrap();
    let mut transaction = region.begin().unwrap();
    transaction.bytes_mut()[0] = 2;
    assert_eq!(transaction.bytes()[0], 2);
    drop(transaction);
    assert_eq!(region.bytes()[0], 1);
    let mut transaction = region.begin().unwrap();
    transaction.grow(2 * PAGE as u64).unwrap();
    transaction.zero(0..PAGE).unwrap();
    transaction.rollback().unwrap();
    assert_eq!((region.size_bytes(), region.bytes()[0]), (PAGE, 1));
    // A leaked transaction stays open: no memory is at risk, and commits say so.
    std::mem::forget(region.begin().unwrap());
    assert!(matches!(region.commit(""), Err(Error::Busy(_))));
}

#[test]
fn a_region_grows_in_place() {
    let folder = Folder::new("grow");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", PAGE as u64).unwrap();
    let start = region.bytes().as_ptr();
    region.bytes_mut()[0] = 1;
    region.grow(1000 * PAGE as u64).unwrap();
    assert_eq!((region.bytes().as_ptr(), region.bytes().len()), (start, 1000 * PAGE));
    region.bytes_mut()[999 * PAGE] = 2;
    region.commit_ranges(&[0..1, 999 * PAGE..1000 * PAGE], "").unwrap();
    region.zero(0..PAGE).unwrap();
    assert_eq!(region.bytes()[0], 0);
    region.rollback().unwrap();
    assert_eq!((region.bytes()[0], region.bytes()[999 * PAGE]), (1, 2));
    region.resize_file(5, 0).unwrap();
    assert_eq!((region.file_bytes(), region.bytes()[999 * PAGE]), (5, 0));
    assert!(region.capacity_bytes() >= region.size_bytes());
    let beyond = region.capacity_bytes() as u64 + 1;
    assert!(matches!(region.grow(beyond), Err(Error::InvalidArgument(_))));
}

#[test]
fn an_asynchronous_commit_has_what_was_written_before() {
    let folder = Folder::new("async");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 256 * PAGE as u64).unwrap();
    region.bytes_mut().fill(1);
    let pending = region.snapshot_async("one", "").unwrap();
    region.bytes_mut().fill(2);
    assert_eq!(pending.wait().unwrap().pages_changed, 256);
    drop(region.commit_async("").unwrap()); // waits
    let pending = region.commit_async("").unwrap();
    drop(region);
    assert!(pending.has_ended()); // closing a region waits, too
    pending.wait().unwrap();
    let (one, main) = (store.open_version("one").unwrap(), store.open_version("main").unwrap());
    assert!(one.bytes().iter().all(|byte| *byte == 1) && main.bytes().iter().all(|byte| *byte == 2));
}

#[test]
fn system_calls_work_on_pinned_bytes() {
    let folder = Folder::new("pin");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 64 * PAGE as u64).unwrap();
    region.bytes_mut().fill(5);
    region.snapshot("five", "").unwrap();
    let version = store.open_version("five").unwrap();
    let file = folder.path().join("file");
    File::create(&file).unwrap().write_all(&version.pin(0..64 * PAGE).unwrap()).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), version.bytes());
    std::fs::write(&file, vec![6; 64 * PAGE]).unwrap();
    File::open(&file).unwrap().read_exact(&mut region.pin_mut(0..64 * PAGE).unwrap()).unwrap();
    region.commit("").unwrap();
    assert!(region.bytes().iter().all(|byte| *byte == 6));
    // A leaked pin keeps the memory, and the branch: nothing dangles.
    std::mem::forget(region.pin(0..1).unwrap());
    drop(region);
    assert!(matches!(store.open_region("main"), Err(Error::Busy(_))));
}

#[test]
fn advice_and_prefetch_change_no_byte() {
    let folder = Folder::new("advice");
    let store = Store::create(folder.store()).unwrap();
    let mut region = store.create_region("main", 1024 * PAGE as u64).unwrap();
    for (index, byte) in region.bytes_mut().iter_mut().enumerate() {
        *byte = (index / PAGE) as u8;
    }
    region.snapshot("s", "").unwrap();
    let version = store.open_version("s").unwrap();
    version.prefetch(0..1024 * PAGE).unwrap();
    version.prefetch_ranges(&[0..1, PAGE..9 * PAGE]).unwrap();
    let bytes = version.bytes();
    for advice in [
        Advice::DontNeed,
        Advice::WillNeed,
        Advice::Random,
        Advice::Sequential,
        Advice::Normal,
        Advice::DontNeed,
    ] {
        region.advise(0..1024 * PAGE, advice).unwrap();
        version.advise(0..1024 * PAGE, advice).unwrap();
        assert!(bytes.iter().enumerate().all(|(index, byte)| *byte == (index / PAGE) as u8));
        assert_eq!(bytes, region.bytes());
    }
    assert!(version.memory_use().unwrap().limit_bytes > 0);
}

#[test]
fn options_reach_the_library() {
    let folder = Folder::new("options");
    let store = StoreOptions::new().encoding(Encoding::new().sha256(true)).create(folder.store()).unwrap();
    for engine in [Engine::Sigsegv, Engine::Uffd] {
        let options = RegionOptions::new()
            .engine(engine)
            .capacity_bytes(64 * PAGE as u64)
            .memory_limit_bytes(1 << 20)
            .spill_directory(folder.path());
        let mut region = match options.open_or_create(&store, "main", PAGE as u64) {
            Err(Error::Unsupported(_)) => continue, // this kernel has no userfaultfd for this user
            other => other.unwrap(),
        };
        assert_eq!((region.engine(), region.memory_use().unwrap().limit_bytes), (engine, 1 << 20));
        assert!(region.capacity_bytes() < 1 << 30);
        region.bytes_mut()[0] += 1;
        region.commit("").unwrap();
    }
}

#[test]
fn an_image_is_a_file_with_the_last_commit() {
    let folder = Folder::new("image");
    let store = Store::create(folder.store()).unwrap();
    let image = folder.path().join("image");
    // SAFETY: nothing else writes the file.
    let options = unsafe { RegionOptions::new().image(&image) };
    let mut region = options.create(&store, "main", PAGE as u64).unwrap();
    assert_eq!(region.engine(), Engine::Mapped);
    region.bytes_mut()[0] = 7;
    region.commit("").unwrap();
    assert_eq!(std::fs::read(&image).unwrap()[0], 7);
}

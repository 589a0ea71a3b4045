//! Errors, with their messages.
use crate::support::{child, store_of_child, Folder};
use vellum::{Error, Store};

#[test]
fn messages_name_the_cause() {
    let folder = Folder::new("errors");
    let error = Store::open(folder.store()).unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
    assert!(error.to_string().contains(folder.store().to_str().unwrap()), "{error}");
    std::fs::write(folder.path().join("file"), "no store").unwrap();
    assert!(matches!(Store::open(folder.path().join("file")), Err(Error::NotAStore(_))));

    let store = Store::create(folder.store()).unwrap();
    assert!(matches!(Store::create(folder.store()), Err(Error::AlreadyExists(_))));
    assert!(matches!(store.open_version("none"), Err(Error::NotFound(message)) if message.contains("none")));
    assert!(matches!(store.create_region("-x", 4096), Err(Error::InvalidArgument(_))));
    assert!(matches!(store.create_region("a\0b", 4096), Err(Error::InvalidArgument(_))));
    let mut region = store.create_region("main", 4096).unwrap();
    region.snapshot("s", "").unwrap();
    assert!(matches!(region.snapshot("s", ""), Err(Error::AlreadyExists(_))));
    let error = region.prefetch(0..4097).unwrap_err();
    assert!(error.message().contains("4097") && error.message().contains("main"), "{error}");
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = region.zero(2..1);
    assert!(matches!(backwards, Err(Error::InvalidArgument(_))));
    assert!(matches!(region.pin_mut(usize::MAX..usize::MAX), Err(Error::InvalidArgument(_))));
}

#[test]
fn a_branch_has_one_writer() {
    let folder = Folder::new("writers");
    let store = Store::create(folder.store()).unwrap();
    let region = store.create_region("main", 4096).unwrap();
    let error = store.open_region("main").unwrap_err();
    assert!(matches!(&error, Error::Busy(message) if message.contains("main")), "{error:?}");
    assert!(Store::open(folder.store()).unwrap().open_region("main").is_err());
    let output = child("errors::the_other_writer", &folder.store()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("the other writer: Err(Busy"), "{output:?}");
    drop(region);
    store.open_region("main").unwrap();
}

#[test]
fn the_other_writer() {
    let store = match store_of_child() {
        Some(store) => store,
        None => return,
    };
    println!("the other writer: {:?}", Store::open(store).unwrap().open_region("main"));
}

/// Files that other programs can change are no memory for `&[u8]`: only `unsafe` selects them.
#[test]
fn the_environment_selects_no_image() {
    let folder = Folder::new("environment");
    let output =
        child("errors::opens_a_region", &folder.store()).env("VELLUM_ENGINE", "mapped").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("opened: Err(Unsupported"), "{output:?}");
}

#[test]
fn opens_a_region() {
    let store = match store_of_child() {
        Some(store) => store,
        None => return,
    };
    let store = Store::create(store).unwrap();
    println!("opened: {:?}", store.create_region("main", 4096).map(|region| region.engine()));
}

/// Each thread has its own last message.
#[test]
fn messages_belong_to_their_thread() {
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                for _ in 0..100 {
                    let path = format!("/no-such-folder/{number}");
                    assert!(Store::open(&path).unwrap_err().message().contains(&path));
                }
            });
        }
    });
}

//! Crashes, and signals.
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::support::{child, store_of_child, Folder};
use vellum::{Region, Store};

const BYTES: u64 = 256 << 10;

fn open(store: &Path) -> Region {
    Store::open_or_create(store).unwrap().open_or_create_region("main", BYTES).unwrap()
}

/// The number in all of the region; a mix of two commits fails.
fn number_in(region: &Region) -> u64 {
    let mut words = region.bytes().chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    let first = words.next().unwrap();
    assert!(words.all(|word| word == first), "a mix of commits: {first} and others");
    first
}

/// Fills the region with 1, 2, 3, ... until it is killed. A line follows each commit.
#[test]
fn a_writer() {
    let store = match store_of_child() {
        Some(store) => store,
        None => return,
    };
    let mut region = open(&store);
    for number in number_in(&region) + 1.. {
        for word in region.bytes_mut().chunks_exact_mut(8) {
            word.copy_from_slice(&number.to_ne_bytes());
        }
        region.commit("").unwrap();
        println!("\ncommitted {number}");
    }
}

#[test]
fn a_kill_leaves_the_last_commit_whole() {
    let folder = Folder::new("kill");
    drop(open(&folder.store()));
    let kills = std::env::var("VELLUM_KILLS").map_or(20, |text| text.parse().unwrap());
    let mut last = 0;
    for kill in 1..=kills {
        let commits = kill % 20 + 1; // that it kills after, at the earliest
        let mut writer = child("processes::a_writer", &folder.store()).spawn().unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut told = 0;
        while let Some(Ok(line)) = lines.next() {
            if let Some(number) = line.strip_prefix("committed ") {
                last = number.parse().unwrap();
                told += 1;
            }
            if told == commits {
                writer.kill().unwrap(); // the loop then reads what is still in the pipe
            }
        }
        writer.wait().unwrap();
        let mut messages = String::new();
        writer.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        assert!(told >= commits, "the writer ended by itself: {messages}");
        let found = number_in(&open(&folder.store()));
        // The last one that returned, or the one that was in progress.
        assert!(found == last || found == last + 1, "{found} after {last}");
        last = found;
    }
}

/// What the process has: open files, mappings, and KiB of memory.
fn possessions() -> [usize; 3] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    [
        std::fs::read_dir("/proc/self/fd").unwrap().count(),
        std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
        memory.split_whitespace().next().unwrap().parse().unwrap(),
    ]
}

#[test]
fn closed_handles_leave_nothing() {
    let folder = Folder::new("leaks");
    let output = child("processes::opens_and_closes", &folder.store()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers = |prefix: &str| -> Vec<usize> {
        let line = text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
        line.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let (early, late) = (numbers("early "), numbers("late "));
    assert_eq!(early[0], late[0], "open files: {text}");
    // One round has 1 MiB in memory, and several mappings.
    assert!(late[1] < early[1] + 100 && late[2] < early[2] + (64 << 10), "{text}");
}

#[test]
fn opens_and_closes() {
    let path = match store_of_child() {
        Some(path) => path,
        None => return,
    };
    for round in 1..=120 {
        let store = Store::open_or_create(&path).unwrap();
        let mut region = store.open_or_create_region("main", 1 << 20).unwrap();
        region.bytes_mut().fill(round as u8);
        drop(region.snapshot_async("s", "").unwrap());
        drop(region.pin_mut(0..1 << 20).unwrap());
        drop(region.begin().unwrap());
        let version = store.open_version("s").unwrap();
        assert_eq!(version.pin(0..1 << 20).unwrap()[0], round as u8);
        assert!(store.open_version("none").is_err() && store.versions().unwrap().len() == 2);
        store.remove("s").unwrap();
        if round == 20 || round == 120 {
            drop((version, region, store));
            let [files, mappings, memory] = possessions();
            println!("\n{} {files} {mappings} {memory}", if round == 20 { "early" } else { "late" });
        }
    }
}

/// Faults that are not the library's go to Rust's own handler.
#[test]
fn a_stack_overflow_is_still_reported() {
    let folder = Folder::new("overflow");
    let output = child("processes::overflows_its_stack", &folder.store()).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && messages.contains("has overflowed its stack"), "{messages}");
}

#[test]
fn overflows_its_stack() {
    let store = match store_of_child() {
        Some(store) => store,
        None => return,
    };
    let mut region = open(&store);
    region.bytes_mut()[0] = 1;
    println!("{}", deep(u64::from(region.bytes()[0])));
}

#[allow(unconditional_recursion)]
fn deep(number: u64) -> u64 {
    let block = [number; 64];
    // SAFETY: a reference is valid to read. Volatile, so that each call keeps its block.
    deep(number + 1) + unsafe { std::ptr::read_volatile(&block[7]) }
}

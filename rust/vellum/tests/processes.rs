//! Crashes, and signals.
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::support::{child, store_of_child, Folder};
use vellum::{Region, Store};

const KILLS: u64 = 20;
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
    let mut last = 0;
    for kill in 1..=KILLS {
        let mut writer = child("processes::a_writer", &folder.store()).spawn().unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut told = 0;
        while let Some(Ok(line)) = lines.next() {
            if let Some(number) = line.strip_prefix("committed ") {
                last = number.parse().unwrap();
                told += 1;
            }
            if told == kill {
                writer.kill().unwrap(); // the loop then reads what is still in the pipe
            }
        }
        writer.wait().unwrap();
        let mut messages = String::new();
        writer.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        assert!(told >= kill, "the writer ended by itself: {messages}");
        let found = number_in(&open(&folder.store()));
        // The last one that returned, or the one that was in progress.
        assert!(found == last || found == last + 1, "{found} after {last}");
        last = found;
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

//! Counts its runs, and keeps a version of each: `counter STORE`.
use vellum::{Result, Store};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).expect("usage: counter STORE");
    let store = Store::open_or_create(path)?;
    let mut region = store.open_or_create_region("main", 1 << 20)?;

    let count = u64::from_le_bytes(region.bytes()[..8].try_into().unwrap()) + 1;
    let mut transaction = region.begin()?; // an error before its commit rolls back
    transaction.bytes_mut()[..8].copy_from_slice(&count.to_le_bytes());
    transaction.commit("one more run")?; // durable, all or nothing
    region.snapshot(&format!("run-{count}"), "")?; // kept until removed, at the cost of the changes

    let first = store.open_version("run-1")?; // beside the live region
    println!("run {count}; run 1 had {}", first.bytes()[0]);
    store.diff("run-1", "main", |range| {
        println!("bytes {range:?} differ");
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(())
}

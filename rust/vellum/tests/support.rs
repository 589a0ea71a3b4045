//! A folder for a test, and processes of the test program itself.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty folder, which is removed with everything in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("vellum-rust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn store(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const STORE: &str = "VELLUM_RUST_TEST_STORE";

/// The store that a process of `child` works on; `None` in the test program itself, where such a test does
/// nothing.
pub fn store_of_child() -> Option<PathBuf> {
    env::var_os(STORE).map(PathBuf::from)
}

/// The test program, to run its test `test` in another process with that store.
pub fn child(test: &str, store: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(STORE, store);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

//! Links libvellum, and tells the tests where its headers are.
//!
//! `VELLUM_BUILD_DIR` names a CMake build directory of Vellum; without it `pkg-config` finds the installed
//! library. `VELLUM_STATIC=1` links the static library. pkg-config is called directly: so the crate has no
//! dependency, and builds without a network.
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    for name in ["VELLUM_BUILD_DIR", "VELLUM_STATIC", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let is_static = matches!(env::var("VELLUM_STATIC").as_deref(), Ok("1"));
    let flags = match env::var("VELLUM_BUILD_DIR") {
        Ok(folder) => flags_of_build(Path::new(&folder), is_static),
        Err(_) => flags_of_installation(is_static),
    };
    for flag in &flags {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            let kind = if is_static && library == "vellum" { "static=" } else { "" };
            println!("cargo:rustc-link-lib={kind}{library}");
        } else if flag == "-pthread" {
            println!("cargo:rustc-link-lib=pthread");
        }
    }
    println!("cargo:rustc-env=VELLUM_HEADERS={}", headers());
}

/// The flags that link the library of a build directory.
fn flags_of_build(folder: &Path, is_static: bool) -> Vec<String> {
    let description = folder.join("vellum.pc");
    println!("cargo:rerun-if-changed={}", description.display());
    let text = fs::read_to_string(&description)
        .unwrap_or_else(|error| panic!("VELLUM_BUILD_DIR: {}: {error}", description.display()));
    let mut flags = vec![format!("-L{}", folder.join("lib").display()), "-lvellum".to_owned()];
    let others = text.lines().find_map(|line| line.strip_prefix("Libs.private:"));
    if let (true, Some(others)) = (is_static, others) {
        flags.extend(others.split_whitespace().map(str::to_owned));
    }
    flags
}

/// The flags that link the installed library.
fn flags_of_installation(is_static: bool) -> Vec<String> {
    let mut arguments = vec!["--libs", "vellum >= 0.1.0"];
    if is_static {
        arguments.push("--static");
    }
    pkg_config(&arguments).unwrap_or_else(|error| {
        panic!("{error}\nInstall Vellum, or set PKG_CONFIG_PATH, or set VELLUM_BUILD_DIR to its build directory.")
    })
}

fn pkg_config(arguments: &[&str]) -> Result<Vec<String>, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned());
    let output =
        Command::new(&program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The folder of the headers: the checkout's, or else the installed ones.
fn headers() -> String {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    if checkout.join("vellum/vellum.h").exists() {
        return checkout.display().to_string();
    }
    let found = pkg_config(&["--variable=includedir", "vellum"]).unwrap_or_default();
    found.first().cloned().unwrap_or_else(|| "/usr/include".to_owned())
}

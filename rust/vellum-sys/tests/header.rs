//! Compares every declaration of this crate with vellum/vellum.h.
//!
//! A C program of static assertions, which is only compiled, has the crate's constants, the types, offsets
//! and numbers of fields, and the types of functions. The names of the header are searched for what the crate
//! lacks.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use vellum_sys::declared::{self, Function, Struct};

const HEADERS: &str = env!("VELLUM_HEADERS");

/// The C type of a type in Rust, such as `const char*` of `*const c_char`.
fn in_c(rust: &str) -> String {
    let text = rust.trim();
    if let Some(pointee) = text.strip_prefix('*') {
        let pointee = pointee.trim();
        return match pointee.strip_prefix("const ") {
            Some(constant) => format!("{} const*", in_c(constant)),
            None => format!("{}*", in_c(pointee.strip_prefix("mut ").expect("*mut"))),
        };
    }
    match text {
        "" | "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "usize" => "size_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "u32" => "uint32_t",
        other => other,
    }
    .to_owned()
}

fn assert_same(c: &mut String, what: &str, type_a: &str, type_b: &str) {
    writeln!(c, "_Static_assert(__builtin_types_compatible_p({type_a}, {type_b}), \"{what}\");").unwrap();
}

fn write_function(c: &mut String, function: &Function, of_header: &str) {
    let parameters: Vec<String> = function.parameters.iter().map(|each| in_c(each)).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let pointer = format!("{} (*)({parameters})", in_c(function.result));
    assert_same(c, function.name, of_header, &pointer);
}

fn write_struct(c: &mut String, each: &Struct) {
    let name = each.name;
    writeln!(c, "_Static_assert(sizeof({name}) == {}, \"size of {name}\");", each.size).unwrap();
    let mut zeros = Vec::new();
    for (field, rust, offset) in &each.fields {
        let what = format!("{name}.{field}");
        assert_same(c, &what, &format!("__typeof__((({name}*)0)->{field})"), &in_c(rust));
        writeln!(c, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{what}\");").unwrap();
        zeros.push(if *rust == "vellum_byte_range" { "{0, 0}" } else { "0" });
    }
    // -Wmissing-field-initializers refuses it when the header has one more field.
    writeln!(c, "extern const {name} all_of_{name};").unwrap();
    writeln!(c, "const {name} all_of_{name} = {{{}}};", zeros.join(", ")).unwrap();
}

/// The C program.
fn probe() -> String {
    let mut c = String::from("#include <stddef.h>\n#include <vellum/vellum.h>\n");
    for (name, value) in declared::declared_constants() {
        writeln!(c, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    for each in declared::declared_callbacks() {
        write_function(&mut c, &each, each.name);
    }
    for each in declared::declared_functions() {
        write_function(&mut c, &each, &format!("__typeof__(&{})", each.name));
    }
    for each in declared::declared_structs() {
        write_struct(&mut c, &each);
    }
    let version = env!("CARGO_PKG_VERSION");
    writeln!(c, "_Static_assert(!__builtin_strcmp(VELLUM_VERSION_STRING, \"{version}\"), \"version\");")
        .unwrap();
    c
}

/// Compiles it, with the headers in `folder`. The compiler's messages are the error.
fn compile(name: &str, c: &str, folder: &Path) -> Result<(), String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, c).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .args([folder, &file])
        .output()
        .expect("a C compiler");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(messages)
    }
}

fn header() -> String {
    fs::read_to_string(Path::new(HEADERS).join("vellum/vellum.h")).expect("the header")
}

/// The identifiers of the header that begin with `prefix`, outside of comments.
fn identifiers(prefix: &str) -> BTreeSet<String> {
    let mut code = String::new();
    for part in header().split("/*") {
        code.push_str(part.split_once("*/").map_or(part, |(_, after)| after));
    }
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_declaration_is_the_header_s() {
    if let Err(messages) = compile("declarations.c", &probe(), Path::new(HEADERS)) {
        panic!("vellum-sys differs from vellum.h:\n{messages}");
    }
}

#[test]
fn the_header_has_no_other_names() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    known.extend(declared::declared_opaque().into_iter().map(str::to_owned));
    known.extend(declared::declared_functions().iter().map(|each| each.name.to_owned()));
    known.extend(declared::declared_callbacks().iter().map(|each| each.name.to_owned()));
    known.extend(declared::declared_structs().iter().map(|each| each.name.to_owned()));
    known.insert("vellum_errc".to_owned()); // int in Rust
    assert_eq!(identifiers("vellum_").difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());

    let mut known: BTreeSet<String> = BTreeSet::new();
    known.extend(declared::declared_constants().iter().map(|(name, _)| (*name).to_owned()));
    let others: Vec<String> = identifiers("VELLUM_")
        .into_iter()
        .filter(|name| !known.contains(name) && !name.ends_with("_INIT") && name != "VELLUM_VELLUM_H")
        .collect();
    assert_eq!(others, Vec::<String>::new());
}

/// Compiles the program with a copy of the header in which the first `from` is `to`.
fn compile_with_change(name: &str, from: &str, to: &str) -> Result<(), String> {
    let text = header();
    assert!(text.contains(from), "the header has no {from}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("vellum")).unwrap();
    fs::write(folder.join("vellum/vellum.h"), text.replacen(from, to, 1)).unwrap();
    fs::copy(Path::new(HEADERS).join("vellum/version.h"), folder.join("vellum/version.h")).unwrap();
    compile(&format!("{name}.c"), &probe(), &folder)
}

#[test]
fn a_change_of_the_header_is_found() {
    assert_eq!(compile_with_change("unchanged", "", ""), Ok(()));
    let changes = [
        ("VELLUM_ERR_BUSY = 6", "VELLUM_ERR_BUSY = 60", "VELLUM_ERR_BUSY"),
        ("uint64_t pages_dirty;", "int64_t pages_dirty;", "vellum_commit_report.pages_dirty"),
        ("uint64_t limit_bytes; ", "uint64_t more, limit_bytes; ", "size of vellum_memory_use"),
        // It fits into the padding at the end: the size stays.
        ("uint32_t journal_half_bytes;", "uint32_t journal_half_bytes, more;", "missing initializer"),
        ("int vellum_rollback(", "void vellum_rollback(", "vellum_rollback"),
        ("vellum_find_version(const vellum_store", "vellum_find_version(vellum_store", "vellum_find_version"),
        ("typedef int (*vellum_range_fn)", "typedef void (*vellum_range_fn)", "vellum_range_fn"),
    ];
    for (number, (from, to, message)) in changes.iter().enumerate() {
        let messages = compile_with_change(&format!("changed-{number}"), from, to).unwrap_err();
        assert!(messages.contains(message), "{to}: {messages}");
    }
}

#[test]
fn every_function_is_in_the_library() {
    assert!(declared::declared_functions().iter().all(|each| each.address != 0));
    // this links them
}

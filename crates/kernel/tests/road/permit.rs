//! Only the kernel makes a permit: going around it does not compile.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the crates that this test was linked with.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Every build of the kernel in there, the newest first.
fn kernels(folder: &Path) -> Vec<PathBuf> {
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libchio_kernel-") && name.ends_with(".rlib")
    };
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<_> = entries.map(|it| it.unwrap().path()).filter(is_kernel).collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
    found
}

/// What the compiler says about a function body outside the kernel; nothing when it accepts it.
fn compile(kernel: &Path, body: &str) -> Option<String> {
    let folder = libraries();
    let number = std::process::id();
    let name = format!("permit_{number}_{}", chio_core::hash::sha256_hex(body.as_bytes()));
    let source = std::env::temp_dir().join(format!("{name}.rs"));
    let text = format!(
        "#![allow(dead_code, unused)]\nuse chio_kernel::Permit;\n\
         fn try_it(permit: Permit) -> Permit {{ {body} }}\n"
    );
    std::fs::write(&source, text).unwrap();
    let output = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-o"])
        .arg(source.with_extension("rmeta"))
        .arg("--extern")
        .arg(format!("chio_kernel={}", kernel.display()))
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg(&source)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&source);
    let _ = std::fs::remove_file(source.with_extension("rmeta"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(errors)
}

#[test]
fn a_permit_cannot_be_made_copied_or_changed_outside_the_kernel() {
    let folder = libraries();
    let usable = |kernel: &PathBuf| compile(kernel, "permit.request_id(); permit").is_none();
    let kernel = kernels(&folder).into_iter().find(usable).expect("a kernel to compile against");
    for (body, error) in [
        ("Permit { request_id: String::new() }", "E0451"),
        ("Permit { ..permit }", "E0451"),
        ("Permit::new(String::new())", "E0599"),
        ("Permit::default()", "E0599"),
        ("permit.clone()", "E0599"),
        ("let mut permit = permit; permit.request_id = String::new(); permit", "E0616"),
    ] {
        let errors = compile(&kernel, body).unwrap_or_else(|| panic!("`{body}` compiles"));
        assert!(errors.contains(error), "`{body}`: expected {error}, found {errors}");
    }
}

//! Tests of the rules with small trees.

use super::{FIGURES, Files, Report, check};

/// A crate that follows all rules.
const MANIFEST: &str = "[package]\nname = \"x\"\nrust-version.workspace = true\n\
    [lints]\nworkspace = true\n";

const WORKSPACE: &str = "[workspace]\n[workspace.package]\nrust-version = \"1.91\"\n";

const FIGURES_FOR_TESTS: &str = "[floors]\nlow = 1\nhigh = 6\n[lines]\nhigh = 100\nlow = 100\n";

fn report(files: &[(&str, &str)]) -> Report {
    let mut tree: Files = [
        ("Cargo.toml", WORKSPACE),
        (
            "deny.toml",
            "[bans]\ndeny = [{ crate = \"native-tls\" }, { crate = \"rustls\", wrappers = [\"hyper-rustls\"] }]\n",
        ),
        (FIGURES, FIGURES_FOR_TESTS),
        ("server/high/Cargo.toml", MANIFEST),
        ("server/low/Cargo.toml", MANIFEST),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into();
    tree.extend(
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
    );
    check(&tree).unwrap()
}

#[track_caller]
fn assert_problems(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(report(files).problems, expected);
}

#[test]
fn a_tidy_tree_has_no_problems() {
    let files = [
        (
            "README.md",
            "Install [Rust](https://rustup.rs) 1.91 or later.",
        ),
        ("Cargo.lock", "[[package]]\nname = \"rustls-pki-types\"\n"),
        ("server/low/src/lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
        // A child imports its ancestors, and tests import what they like.
        (
            "server/low/src/a.rs",
            "use crate::{b::B, shared};\npub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n",
        ),
        (
            "server/low/src/b.rs",
            "// See crate::a.\nuse super::shared;\npub struct B;\n",
        ),
        ("server/low/src/c.rs", "use crate::a::A;\n"),
        ("server/low/src/tests.rs", "use crate::a::A; // A test.\n"),
    ];
    assert_problems(&files, &[]);
    let kept = report(&files).figures;
    assert!(
        kept.contains("low = 9\n") && !kept.contains("high = 100"),
        "{kept}"
    );
}

#[test]
fn circles_are_found_through_parents_and_groups() {
    assert_problems(
        &[
            (
                "server/low/src/a/mod.rs",
                "pub use one::{One, Two};\nmod one;\n",
            ),
            (
                "server/low/src/a/one.rs",
                "use crate::{b::{self, B as C}, d};\n",
            ),
            ("server/low/src/b.rs", "use std::fmt;\nuse super::a::One;\n"),
        ],
        &["circles: low: 3, at most 0 files import each other in circles: a a::one b"],
    );
}

#[test]
fn arrows_that_run_back_up_are_counted_between_top_modules() {
    // No file is in a circle, but each of four pairs of modules is.
    let mut files = vec![("server/low/src/lib.rs", "mod a;\n".to_owned())];
    for (low, high) in [
        ("server/low/src/a/low.rs", "server/low/src/a/high.rs"),
        ("server/low/src/b/low.rs", "server/low/src/b/high.rs"),
        ("server/low/src/c/low.rs", "server/low/src/c/high.rs"),
        ("server/low/src/d/low.rs", "server/low/src/d/high.rs"),
    ] {
        files.push((low, String::new()));
        files.push((high, "use crate::e::low::X;\n".to_owned()));
    }
    files.push(("server/low/src/e/low.rs", String::new()));
    files.push((
        "server/low/src/e/high.rs",
        "use crate::{a::low, b::low, c::low, d::low};\n".to_owned(),
    ));
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let shown = "arrows: low: 4, at most 3 arrows run back up: a → e, b → e, c → e, d → e";
    assert_problems(&files, &[shown]);
}

#[test]
fn large_files_and_folders_are_found() {
    let long = "-- A line.\n".repeat(601);
    let generated = format!("-- Generated.\n{long}");
    let names: Vec<_> = (0..16).map(|n| format!("tests/some/{n}.rs")).collect();
    let mut files: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("clients/long.lua", &long));
    files.push(("clients/types.lua", &generated));
    assert_problems(
        &files,
        &[
            "files: clients/long.lua: 601, at most 600 lines: split the file",
            "folders: tests/some: 16, at most 15 source files: group them in folders",
        ],
    );
}

#[test]
fn production_lines_may_only_fall() {
    let figures = FIGURES_FOR_TESTS.replace("low = 100", "low = 2");
    let text = "//! Docs.\n\nfn a() {\n    // Comment.\n    b();\n}\n";
    let files = [(FIGURES, figures.as_str()), ("server/low/src/lib.rs", text)];
    assert_problems(
        &files,
        &[
            "lines: low: 3, at most 2 production lines: remove code, or raise the figure and say why",
        ],
    );
    // An update lowers the others, and raises none.
    let updated = report(&files);
    assert_eq!(updated.lower, ["lines of high 0"]);
    assert!(updated.figures.contains("low = 2"), "{}", updated.figures);
}

#[test]
fn words_are_found_in_comments_and_documents_only() {
    assert_problems(
        &[
            ("README.md", "Nobody, `reads` it\nis standing besides.\n"),
            (
                "server/low/src/lib.rs",
                "/// Stands here.\nfn beside() {} // beside\n",
            ),
        ],
        &[
            "README.md:1: write another word for \"nobody\"",
            "server/low/src/lib.rs:1: write another word for \"stands\"",
        ],
    );
}

#[test]
fn cut_chains_are_found() {
    let text = "\
fn shadowed() {
    let names = read(
        path,
    );
    let names = names.map(f);
    use_twice(&names, &names)
}
fn iterator(list: &[u8]) {
    let bytes = list.iter();
    bytes
        .map(f)
        .collect()
}
fn fine(list: &[u8]) {
    let found = list.len();
    found.max(1);
    let bytes = list.iter();
    f();
    bytes.map(f)
}
";
    assert_problems(
        &[("server/low/src/lib.rs", text)],
        &["chains: low: 2, at most 0 chains cut by `let`: lib.rs:2 lib.rs:9"],
    );
}

#[test]
fn dependencies_point_down_and_libraries_use_no_doors() {
    let with = |dependencies: &str| format!("{MANIFEST}{dependencies}");
    let low = with(
        "[dependencies]\nsightline-high.workspace = true\nserde = \"1\"\n\
         [target.'cfg(unix)'.dev-dependencies]\nother = { package = \"tokio\", version = \"1\" }\n",
    );
    let high = with(
        "[dependencies]\nsightline-low.workspace = true\ntokio = \"1\"\n[dev-dependencies]\nsightline-high = \"1\"\n",
    );
    assert_problems(
        &[
            ("server/high/Cargo.toml", high.as_str()),
            ("server/low/Cargo.toml", low.as_str()),
            ("server/new/Cargo.toml", MANIFEST),
            (
                "tests/it/Cargo.toml",
                "[package]\nname = \"it\"\nrust-version = \"1.90\"\n",
            ),
        ],
        &[
            "server/low/Cargo.toml: must not depend on sightline-high",
            "server/low/Cargo.toml: must not depend on tokio",
            "server/new/Cargo.toml: the crate has no floor in tidy.toml",
            "tests/it/Cargo.toml: inherit `lints` and `rust-version` from the workspace",
        ],
    );
}

#[test]
fn banned_crates_and_other_rust_versions_are_found() {
    assert_problems(
        &[
            (
                "fuzz/Cargo.lock",
                "[[package]]\nname = \"native-tls\"\nversion = \"1\"\n",
            ),
            (
                "Cargo.lock",
                "[[package]]\nname = \"rustls\"\nversion = \"1\"\n\n\
                 [[package]]\nname = \"hyper-rustls\"\nversion = \"1\"\ndependencies = [\n \"rustls 1\",\n]\n\n\
                 [[package]]\nname = \"reqwest\"\nversion = \"1\"\ndependencies = [\n \"rustls\",\n]\n",
            ),
            (
                "README.md",
                "Install [Rust](https://rustup.rs) 1.90 or later.",
            ),
        ],
        &[
            "Cargo.lock: reqwest must not depend on rustls",
            "fuzz/Cargo.lock: native-tls is banned in deny.toml",
            "README.md: the minimum Rust version is 1.91",
        ],
    );
}

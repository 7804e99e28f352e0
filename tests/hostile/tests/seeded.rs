//! Runs every target on stable: the recorded cases, then pseudorandom input.
//!
//! `SIGHTLINE_HOSTILE_TIMES` multiplies the number of cases; `SIGHTLINE_HOSTILE_SEED`
//! changes the seed. Failing input is printed as a file to keep.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and says where it was"
)]

use std::{fs, path::Path};

use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use sightline_hostile::{TARGETS, Target};

/// Maximum length of a case, in bytes.
const LONGEST: usize = 400;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap()
}

fn hold(name: &str) {
    let target = target(name);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("cases")
        .join(name);
    for case in fs::read_dir(cases).into_iter().flatten() {
        let path = case.unwrap().path();
        eprintln!("{}", path.display());
        (target.run)(&fs::read(path).unwrap());
    }
    let times = u32::try_from(number("SIGHTLINE_HOSTILE_TIMES", 1)).unwrap();
    let config = Config {
        cases: target.cases * times,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = number("SIGHTLINE_HOSTILE_SEED", 6).to_le_bytes();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.repeat(4));
    let outcome =
        TestRunner::new_with_rng(config, rng).run(&vec(any::<u8>(), 0..LONGEST), |bytes| {
            let held = std::panic::catch_unwind(|| (target.run)(&bytes));
            held.map_err(|panic| TestCaseError::fail(text_of(&*panic)))
        });
    if let Err(TestError::Fail(why, bytes)) = outcome {
        let found = std::env::temp_dir().join(format!("sightline-{name}-case"));
        fs::write(&found, &bytes).unwrap();
        panic!(
            "{why}\n{} holds the input; keep it in cases/{name}",
            found.display()
        );
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_default()
}

#[test]
fn frames() {
    hold("frames");
}

#[test]
fn params() {
    hold("params");
}

#[test]
fn rules() {
    hold("rules");
}

#[test]
fn commands() {
    hold("commands");
}

#[test]
fn conversations() {
    hold("conversations");
}

#[test]
fn logs() {
    hold("logs");
}

#[test]
fn stored() {
    hold("stored");
}

/// A fuzz target without a function here, or the reverse, is an error.
#[test]
fn every_target_has_its_binary() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

//! Compared programs and the machine.

use std::{fs, process::Command, thread};

use serde_json::json;

use crate::session::{Worker, node_folder};

/// Returns the current time, to the second.
pub(crate) fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%d %H:%M:%S UTC")
        .to_string()
}

/// Returns names and versions.
pub(crate) fn all() -> Vec<(String, String)> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        match output {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let version = said.trim().trim_start_matches(program);
                let version = version.trim_start_matches(['-', ' ']);
                version.trim_start_matches("version ").to_owned()
            }
            Err(_) => "not found".to_owned(),
        }
    };
    let mut found = vec![
        (
            "sightline",
            sightline_local::process::version::LONG_VERSION.to_owned(),
        ),
        ("git", said("git", &["--version"])),
    ]
    .into_iter()
    .map(|(name, version)| (name.to_owned(), version))
    .collect::<Vec<_>>();
    if node_folder().is_ok() {
        let versions = Worker::start().ask(&json!({ "op": "versions" }));
        for (name, version) in versions.as_object().unwrap() {
            found.push((name.clone(), version.as_str().unwrap().to_owned()));
        }
    }
    let processors = thread::available_parallelism().map_or(0, usize::from);
    for (name, version) in [
        ("valgrind", said("valgrind", &["--version"])),
        ("rustc", said("rustc", &["--version"])),
        ("kernel", said("uname", &["-srm"])),
        ("processors", format!("{processors} ({})", processor())),
        ("memory", memory()),
    ] {
        found.push((name.to_owned(), version));
    }
    found
}

fn processor() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = known.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()));
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory() -> String {
    let known = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = known
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or_else(
        || "this system does not tell".to_owned(),
        |kilobytes| format!("{:.1} GB", kilobytes * 1024.0 / 1e9),
    )
}

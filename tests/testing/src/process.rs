//! Tests that start their own test binary as another process.

/// Returns the full name of a test for `--exact`, from `module_path!()` and the function name.
pub fn test_name(module_path: &str, function: &str) -> String {
    match module_path.split_once("::") {
        Some((_, module)) => format!("{module}::{function}"),
        None => function.to_owned(),
    }
}

//! Values of variables of servers are in no list, log or error.

use std::{cmp::Reverse, collections::BTreeMap};

/// Values that are shorter are not replaced: they would be part of any text.
const MIN_SECRET: usize = 4;

/// Returns the values that are replaced, longest first, with what replaces them.
pub fn secrets(variables: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut secrets: Vec<(String, String)> = variables
        .iter()
        .filter(|(_, value)| value.len() >= MIN_SECRET)
        .map(|(name, value)| (value.clone(), format!("${{{name}}}")))
        .collect();
    secrets.sort_by_key(|(value, _)| Reverse(value.len()));
    secrets
}

/// Replaces values of variables in a text.
pub fn masked(text: &str, secrets: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (value, name) in secrets {
        text = text.replace(value, name);
    }
    text
}

//! The words of a simple command, as the guard reads them.

use crate::command::{expand::Field, programs::program_name};

/// The words of a simple command.
pub(super) struct Invocation {
    pub(super) words: Vec<Field>,
    known: Vec<Option<String>>,
}

impl Invocation {
    pub(super) fn new(words: &[Field]) -> Self {
        Self {
            words: words.to_vec(),
            known: words.iter().map(Field::known).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns a word if its value is known.
    pub(super) fn exact(&self, at: usize) -> Option<&str> {
        self.known.get(at)?.as_deref()
    }

    /// Returns the name of the program at a word.
    pub(super) fn program(&self, at: usize) -> String {
        let word = self.words.get(at);
        word.map(|word| program_name(&word.text()))
            .unwrap_or_default()
    }

    /// Returns the command line that `sightline exec` runs.
    pub(super) fn executed(&self) -> Option<String> {
        let texts = self.texts(0);
        if self.program(0) != "sightline" || !texts.iter().any(|text| text == "exec") {
            return None;
        }
        let mut at = texts.iter().position(|text| text == "exec")? + 1;
        let mut is_shell = false;
        while let Some(option) = texts.get(at).filter(|text| text.starts_with("--")) {
            at += if option == "--root" { 2 } else { 1 };
            is_shell |= option == "--shell";
            if option == "--" {
                break;
            }
        }
        let quoted = (at..self.len()).map(|at| match self.exact(at) {
            Some(word) if is_shell => word.to_owned(),
            Some(word) => format!("'{}'", word.replace('\'', "'\\''")),
            None => "\"$unknown\"".to_owned(),
        });
        Some(quoted.collect::<Vec<_>>().join(" "))
    }

    pub(super) fn texts(&self, from: usize) -> Vec<String> {
        let words = self.words.get(from..).unwrap_or_default();
        words.iter().map(Field::text).collect()
    }
}

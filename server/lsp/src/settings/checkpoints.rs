//! Checkpoint settings.

use sightline_checkpoint::Settings;

use super::Reader;

pub(super) fn read(reader: &mut Reader<'_>) -> Settings {
    let default = Settings::default();
    let exclude: Option<Vec<String>> = reader.read("checkpoints.exclude");
    let names = exclude.map(|names| valid_names(reader, names));
    Settings {
        max_file_size: reader
            .read("checkpoints.maxFileSize")
            .unwrap_or(default.max_file_size),
        exclude: names.unwrap_or(default.exclude),
        max_files: reader
            .read("checkpoints.maxFiles")
            .unwrap_or(default.max_files),
        max_total_size: reader
            .read("checkpoints.maxTotalSize")
            .unwrap_or(default.max_total_size),
        keep_automatic: reader
            .read("checkpoints.keepAutomatic")
            .unwrap_or(default.keep_automatic),
    }
}

/// Returns the valid folder names; reports the others.
fn valid_names(reader: &mut Reader<'_>, names: Vec<String>) -> Vec<String> {
    let mut valid_names = Vec::new();
    for name in names {
        // People write `target/` in ignore files.
        let bare = name.strip_suffix('/').unwrap_or(&name);
        if bare.is_empty() || bare == "." || bare == ".." || bare.contains(['/', '\0']) {
            let why = format!("must contain folder names, not paths (is {name:?})");
            reader.problem("checkpoints.exclude", why);
            continue;
        }
        valid_names.push(bare.to_owned());
    }
    valid_names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::resolve;

    #[test]
    fn set_values_are_used_and_others_default() {
        let (settings, problems) = resolve(&json!({ "checkpoints": { "maxFiles": 7 } }));
        let default = Settings::default();
        assert_eq!(problems, []);
        assert_eq!(settings.checkpoints.max_files, 7);
        assert_eq!(settings.checkpoints.exclude, default.exclude);
        let set = json!({ "checkpoints": { "exclude": [], "maxFileSize": "big" } });
        let (settings, problems) = resolve(&set);
        assert!(settings.checkpoints.exclude.is_empty());
        assert_eq!(settings.checkpoints.max_file_size, default.max_file_size);
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn folders_are_names_not_paths() {
        let set = json!({ "checkpoints": { "exclude": ["target/", "a/b", ".."] } });
        let (settings, problems) = resolve(&set);
        assert_eq!(settings.checkpoints.exclude, ["target"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}

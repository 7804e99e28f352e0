//! Merging into users' files.

use toml_edit::{DocumentMut, Item};

use super::{Merged, keys, languages};

fn merged(text: &str, names: &[&str]) -> Merged {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = languages::wanted(&names).unwrap();
    let merged = languages::merge(text, &wanted, "sightline").unwrap();
    let again = languages::merge(&merged.text, &wanted, "sightline").unwrap();
    assert_eq!(again.text, merged.text, "merging twice is merging once");
    let removed = languages::remove(&merged.text).unwrap().text;
    assert!(!removed.contains("sightline"), "{removed}");
    assert_eq!(languages::remove(&removed).unwrap().text, removed);
    merged
}

/// Asserts that merging and removing changes nothing.
fn assert_removable(text: &str, names: &[&str]) {
    let removed = languages::remove(&merged(text, names).text).unwrap();
    assert_eq!(removed.text, text);
}

fn refused(text: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = languages::wanted(&names).unwrap();
    let error = languages::merge(text, &wanted, "sightline").unwrap_err();
    error.message
}

/// Parses a text with a plain TOML parser.
fn read(text: &str) -> DocumentMut {
    text.parse().unwrap()
}

/// Returns the servers of a language, in order, as written.
fn servers(text: &str, name: &str) -> Vec<String> {
    let document = read(text);
    let all = document["language"].clone().into_array_of_tables().unwrap();
    let language = all
        .iter()
        .find(|language| language["name"].as_str() == Some(name))
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    let servers = language["language-servers"].as_array().unwrap();
    servers
        .iter()
        .map(|server| server.to_string().trim().to_owned())
        .collect()
}

#[test]
fn an_empty_file_gets_the_server_and_helix_defaults() {
    let merged = merged("", &["rust", "text"]);
    assert_eq!(
        merged.text.trim_start(),
        r#"[language-server.sightline]
command = "sightline"
args = ["--stdio"]

[[language]]
name = "rust"
language-servers = ["rust-analyzer", "sightline"] # added by sightline

[[language]]
name = "text"
scope = "text.plain"
file-types = ["txt"]
language-servers = ["sightline"] # added by sightline
"#
    );
    assert!(merged.notes.is_empty());
}

#[test]
fn the_users_formatting_is_preserved() {
    let before = r#"# my languages
use-grammars = { only = [ "rust" ] } # few

[language-server]
rust-analyzer.config.check.command = "clippy"   # pedantic

[[language]] # the best one
name   = "rust"
auto-format = true
language-servers = [ "rust-analyzer", { name = "typos", only-features = ["diagnostics"] } ] # two

# python comes later
[[language]]
name = 'python'
language-servers = [
    "pyright", # types
    'ruff',    # lints
    # "pylsp",
]
# the end
"#;
    let merged = merged(before, &["rust", "python"]);
    assert_eq!(
        merged.text,
        r#"# my languages
use-grammars = { only = [ "rust" ] } # few

[language-server]
rust-analyzer.config.check.command = "clippy"   # pedantic

[language-server.sightline]
command = "sightline"
args = ["--stdio"]

[[language]] # the best one
name   = "rust"
auto-format = true
language-servers = [ "rust-analyzer", { name = "typos", only-features = ["diagnostics"] } , "sightline"] # two

# python comes later
[[language]]
name = 'python'
language-servers = [
    "pyright", # types
    'ruff',    # lints
    # "pylsp",
    "sightline",
]
# the end
"#
    );
}

#[test]
fn a_language_without_a_list_keeps_the_servers_of_helix() {
    let before = "[[language]]\nname = \"python\"\nauto-format = true\n";
    let merged = merged(before, &["python"]);
    let servers = servers(&merged.text, "python");
    for default in ["ty", "ruff", "jedi", "pylsp"] {
        assert!(servers.contains(&format!("{default:?}")), "{servers:?}");
    }
    assert_eq!(servers.last().unwrap(), "\"sightline\"");
    assert!(merged.text.starts_with(before), "{}", merged.text);
}

#[test]
fn a_list_the_user_emptied_only_gets_this_server() {
    let before = "[[language]]\nname = \"rust\"\nlanguage-servers = []\n";
    let merged = merged(before, &["rust"]);
    assert_eq!(servers(&merged.text, "rust"), ["\"sightline\""]);
}

#[test]
fn a_restricted_entry_of_the_user_counts() {
    let before = "[[language]]\nname = \"rust\"\n\
        language-servers = [\"rust-analyzer\", { name = \"sightline\", only-features = [\"hover\"] }]\n";
    let merged = merged(before, &["rust"]);
    assert_eq!(servers(&merged.text, "rust").len(), 2);
}

#[test]
fn a_configured_server_is_preserved() {
    let before = "[language-server.sightline]\ncommand = \"/opt/sightline\"\n\
                  [language-server.sightline.config]\nnotifications = true\n";
    let merged = merged(before, &["rust"]);
    assert!(merged.text.starts_with(before), "{}", merged.text);
    assert!(!merged.text.contains("--stdio"));
}

#[test]
fn excluded_features_of_a_server_stay_excluded() {
    let merged = merged("", &["pkgbuild"]);
    let servers = servers(&merged.text, "pkgbuild");
    let restricted = "{ name = \"bash-language-server\", except-features = [\"diagnostics\"] }";
    assert!(
        servers.iter().any(|server| server == restricted),
        "{servers:?}"
    );
}

#[test]
fn an_inline_list_keeps_its_format() {
    let before = "language-server = { a = { command = \"a\" } }\n\
                  language = [{ name = \"rust\", language-servers = [\"a\"] }, { name = \"go\" }]\n";
    let merged = merged(before, &["rust", "go", "zig"]);
    let document = read(&merged.text);
    let all = document["language"].as_array().unwrap();
    let lists: Vec<String> = all
        .iter()
        .map(|language| language.as_inline_table().unwrap()["language-servers"].to_string())
        .collect();
    assert_eq!(lists.len(), 3);
    assert_eq!(lists[0].trim(), r#"["a", "sightline"]"#);
    assert!(
        lists[1].contains("gopls") && lists[2].contains("zls"),
        "{lists:?}"
    );
    assert_eq!(
        document["language-server"]["sightline"]["command"].as_str(),
        Some("sightline")
    );
}

#[test]
fn duplicate_entries_of_a_language_are_both_read() {
    let before = "[[language]]\nname = \"rust\"\nlanguage-servers = [\"a\"]\n\
                  [[language]]\nname = \"rust\"\nauto-format = true\n";
    let merged = merged(before, &["rust"]);
    assert_eq!(merged.text.matches("sightline\"]").count(), 1);
    assert_eq!(servers(&merged.text, "rust"), ["\"a\"", "\"sightline\""]);
}

#[test]
fn plain_text_stays_with_the_users_language() {
    let before = "[[language]]\nname = \"notes\"\nscope = \"text.notes\"\n\
                  file-types = [\"txt\"]\n";
    let merged = merged(before, &["text", "notes"]);
    assert_eq!(servers(&merged.text, "notes"), ["\"sightline\""]);
    assert!(!merged.text.contains("text.plain"), "{}", merged.text);
    assert!(merged.notes[0].contains(".txt"), "{:?}", merged.notes);
}

#[test]
fn a_language_with_unknown_servers_is_rejected() {
    for text in ["", "[[language]]\nname = \"klingon\"\nauto-format = true\n"] {
        let message = refused(text, &["klingon"]);
        assert!(
            message.contains("klingon") && message.contains("--health"),
            "{message}"
        );
    }
    let own = "[[language]]\nname = \"klingon\"\nscope = \"source.klingon\"\n";
    assert_eq!(
        servers(&merged(own, &["klingon"]).text, "klingon"),
        ["\"sightline\""]
    );
    assert!(languages::wanted(&["rust".into(), " ".into()]).is_err());
}

#[test]
fn a_file_with_unexpected_structure_is_rejected() {
    for (text, complaint) in [
        ("language = 1", "`language`"),
        ("language = [1]", "`language`"),
        ("[language]\nname = \"rust\"", "`language`"),
        ("language-server = \"a\"", "`language-server`"),
        (
            "[[language]]\nname = \"rust\"\nlanguage-servers = \"a\"",
            "`language-servers`",
        ),
        ("[[language", "not valid TOML"),
    ] {
        let message = refused(text, &["rust"]);
        assert!(message.contains(complaint), "{text}: {message}");
    }
}

#[test]
fn without_names_the_common_languages_are_used() {
    let common = languages::wanted(&[]).unwrap();
    let all = languages::wanted(&["all".into(), "rust".into()]).unwrap();
    assert!(common.len() > 40 && all.len() > 240);
    // All names are known and none is duplicated.
    for wanted in [common, all] {
        let merged = languages::merge("", &wanted, "sightline").unwrap();
        let document = read(&merged.text);
        let entries = document["language"].as_array_of_tables().unwrap();
        assert_eq!(entries.len(), wanted.len());
    }
}

fn bound(text: &str) -> Merged {
    let merged = keys::merge(text).unwrap();
    let again = keys::merge(&merged.text).unwrap();
    assert_eq!(again.text, merged.text, "merging twice is merging once");
    assert_eq!(keys::remove(&merged.text).unwrap().text, text);
    merged
}

#[test]
fn removing_restores_the_text() {
    for text in [
        "",
        "# mine\n[[language]]\nname = \"rust\" # r\nlanguage-servers = [ \"a\", \"b\" ]\n",
        "[language-server.a]\ncommand = \"a\"\n\n[[language]]\nname = \"zig\"\nauto-format = true\nlanguage-servers = [\"a\"]\n# end\n",
        "language = [{ name = \"rust\", language-servers = [\"a\"] }]\n",
        "[[language]]\nname = \"rust\"\nlanguage-servers = [\n  \"a\", # first\n  \"b\",\n]\n",
        // What Helix does without them, too.
        "# my langs\n[[language]]\nname = \"rust\"\nlanguage-servers = [\"rust-analyzer\"] # keep\n",
        "language = [{ name = \"rust\", language-servers = [\"rust-analyzer\"] }]\n",
        "language = [\n  { name = \"zig\", language-servers = [\"zls\"] },\n]\n",
    ] {
        assert_removable(text, &["rust", "go", "zig", "text"]);
    }
}

#[test]
fn keys_are_bound_where_they_are_free() {
    let before = "theme = \"onedark\" # dark\n\n[keys.normal.space]\nw = \":w\"\n";
    let merged = bound(before);
    assert!(merged.text.starts_with(before), "{}", merged.text);
    let document = read(&merged.text);
    for mode in ["normal", "select"] {
        let menu = &document["keys"][mode]["space"]["A"];
        assert_eq!(
            menu["e"].as_str(),
            Some(":lsp-workspace-command sightline.showEnvironment")
        );
        assert_eq!(
            menu["a"].as_str(),
            Some(r#":lsp-workspace-command sightline.explainAccess "%{buffer_name}""#)
        );
    }
    assert!(merged.notes.is_empty());
}

#[test]
fn commands_for_users_are_bound() {
    let commands = sightline_lsp::capabilities::user_commands();
    let merged = bound("");
    let mut seen = 0;
    for line in merged.text.lines().filter(|line| line.contains(" = ")) {
        let command = line.split("lsp-workspace-command ").nth(1).unwrap();
        let name = command.split([' ', '"', '\'']).next().unwrap();
        assert!(commands.iter().any(|command| command == name), "{line}");
        seen += 1;
    }
    assert_eq!(seen, 16, "{}", merged.text);
}

#[test]
fn bound_keys_are_preserved_and_reported() {
    let before = "[keys.normal.space]\nA = \":reload-all\"\n\
                  [keys.select.space.A]\ne = \"no_op\"\n";
    let merged = bound(before);
    let document = read(&merged.text);
    assert_eq!(
        document["keys"]["normal"]["space"]["A"].as_str(),
        Some(":reload-all")
    );
    let menu = &document["keys"]["select"]["space"]["A"];
    assert_eq!(menu["e"].as_str(), Some("no_op"));
    assert!(menu.get("a").is_some_and(Item::is_str));
    assert_eq!(merged.notes.len(), 2, "{:?}", merged.notes);
}

#[test]
fn inline_and_dotted_bindings_are_extended() {
    for before in [
        "keys = { normal = { space = { w = \":w\" } } }\n",
        "keys.normal.space.w = \":w\"\n",
        "[keys]\nnormal.space = { w = \":w\" }\n",
        "[keys.normal]\nspace.w = \":w\"\n[keys.select]\nx = \"no_op\"\n",
    ] {
        let merged = bound(before);
        let document = read(&merged.text);
        for mode in ["normal", "select"] {
            let menu = &document["keys"][mode]["space"]["A"];
            assert!(menu["e"].is_str(), "{before}: {}", merged.text);
        }
        assert_eq!(
            document["keys"]["normal"]["space"]["w"].as_str(),
            Some(":w")
        );
    }
    for odd in ["keys = 1", "[keys]\nnormal = \"a\""] {
        assert!(keys::merge(odd).is_err(), "{odd}");
    }
}

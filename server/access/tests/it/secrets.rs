//! The built-in rules for secrets.

mod contents;
mod redact;
mod versions;

use std::{path::Path, sync::Arc};

use sightline_access::{Access, AccessView};
use sightline_base::path::{Root, Roots};
use sightline_protocol::{
    access::{AccessKind, AccessRule, PathAccess},
    settings::Secrets,
};

use crate::scratch::{abs, ask, kind, workspace, write};

const RULES: &str = include_str!("../../src/built_in_secrets.gitignore");

fn access(root: &Path, secrets: Secrets) -> Access {
    let roots = Roots::new(vec![Root::new(abs(root), None)]);
    Access::new(Arc::new(roots), Vec::new(), secrets)
}

fn view(root: &Path) -> AccessView {
    access(root, Secrets::Deny).view().0
}

/// Files that are denied only with a secret in them.
const BY_CONTENT: [(&str, &str); 28] = [
    (".yarnrc.yml", "npmAuthToken: a"),
    ("pip.conf", "index-url = https://u:p@host/"),
    (".s3cfg", "access_key = a"),
    ("home/.config/hub", "oauth_token: a"),
    ("home/glab-cli/config.yml", "token: a"),
    (".claude.json", "{\"primaryApiKey\": \"a\"}"),
    ("home/sightline/mcp.json", "{\"env\": {\"API_KEY\": \"a\"}}"),
    (".mcp.json", "\"token\": \"a\""),
    ("mcp.json", "\"token\": \"a\""),
    ("mcp-config.json", "\"token\": \"a\""),
    ("cline_mcp_settings.json", "\"token\": \"a\""),
    ("opencode.json", "\"apiKey\": \"a\""),
    ("opencode.jsonc", "\"apiKey\": \"a\""),
    ("home/.claude/settings.json", "\"ANTHROPIC_API_KEY\": \"a\""),
    ("home/.claude/settings.local.json", "\"token\": \"a\""),
    (
        "home/.codex/config.toml",
        "experimental_bearer_token = \"a\"",
    ),
    (".copilot/config.json", "\"gho_0123456789abcdefABCD\""),
    ("home/.copilot/config.json", "\"gho_0123456789abcdefABCD\""),
    ("home/.gemini/settings.json", "\"token\": \"a\""),
    ("home/.qwen/settings.json", "\"apiKey\": \"a\""),
    ("server.pem", KEY),
    ("server.key", KEY),
    ("server.key~", KEY),
    (".npmrc", "_authToken=a"),
    (".npmrc.tmp", "_authToken=a"),
    (".pypirc", "password=a"),
    ("x.pem", KEY),
    ("x.key", KEY),
];
const KEY: &str = "-----BEGIN PRIVATE KEY-----";

/// Returns the rule of a denied path.
fn rule(verdict: PathAccess) -> AccessRule {
    assert_eq!(verdict.access, AccessKind::Denied, "{verdict:?}");
    verdict.rule.unwrap()
}

#[test]
fn secrets_are_denied_without_a_rule_file() {
    let (_dir, root) = workspace(&BY_CONTENT);
    let view = view(&root);
    let secrets = ".env .ENV .env.local .env.production .env.keys .env.test.local app/.env app/.env.staging prod.env config/docker.env .dev.vars .dev.vars.production \
        server.pem server.key AuthKey.p8 id.p12 id.pfx putty.ppk app.jks app.keystore passwords.kdbx \
        id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk keys/id_rsa \
        .ssh/ .ssh/config .ssh/known_hosts home/.ssh/id_rsa.pub .gnupg/pubring.kbx .password-store/a.gpg \
        .netrc _netrc .git-credentials .npmrc .pypirc .cargo/credentials .cargo/credentials.toml \
        home/.cargo/credentials.toml .gem/credentials .docker/config.json .dockercfg .aws/credentials home/.aws/credentials \
        .azure/accessTokens.json .azure/msal_token_cache.json .config/gcloud/credentials.db .config/gh/hosts.yml \
        .kube/config home/.kube/config .vault-token .terraformrc credentials.tfrc.json \
        .pgpass .my.cnf .mylogin.cnf .htpasswd secrets.yml secrets.yaml config/secrets.yml secrets.json \
        .streamlit/secrets.toml credentials.json client_secret.json client_secret_1.apps.json \
        .claude/.credentials.json home/.codex/auth.json .gemini/oauth_creds.json .gemini/mcp-oauth-tokens.json \
        .qwen/oauth_creds.json .config/github-copilot/apps.json .config/github-copilot/hosts.json .codex/.credentials.json \
        .local/share/opencode/auth.json .local/share/opencode/mcp-auth.json .cline/data/settings/providers.json \
        .config/git/credentials .aws/sso/cache/x.json .config/containers/auth.json .composer/auth.json \
        .config/pypoetry/auth.toml .config/sops/age/keys.txt .kaggle/kaggle.json .cache/huggingface/token \
        .config/solana/id.json rclone.conf .vault_pass .local/share/keyrings/login.keyring \
        Library/Keychains/login.keychain-db .mozilla/firefox/a.default/logins.json .config/chromium/Default/Cookies \
        .yarnrc.yml pip.conf .s3cfg home/.config/hub home/glab-cli/config.yml .claude.json home/sightline/mcp.json \
        .copilot/config.json service-account.json serviceAccountKey.json secrets.properties secret.json";
    for path in secrets.split_whitespace() {
        let rule = rule(ask(&view, path));
        assert_eq!(rule.source, "built-in secrets", "{path}");
        let line = RULES.lines().nth(rule.line as usize - 1);
        assert_eq!(line, Some(rule.pattern.as_str()), "{path}");
    }
}

#[test]
fn ordinary_files_are_allowed() {
    let (_dir, root) = workspace(&[]);
    let view = view(&root);
    let ordinary = "README.md env .envrc environment.ts src/env.rs .env.example .env.sample .env.template .env.dist \
        .env.local.example app/.env.production.sample .env.schema .env.defaults .env.example.local .env.tpl .env.tmpl \
        .env.j2 .env.erb .env.example.md .env.d.ts .env.test .env.testing .env.ci .dev.vars.example .dev.vars.sample service-account.example.json .env.vault .env-example .example.env example.env \
        .envrc.example client_secret.example.json public.pem src/cookies/index.ts containers/auth.ts secret.yml id_rsa.pub id_ed25519.pub server.crt ca.cer cacert.pem \
        venv/lib/python3/site-packages/certifi/any.pem node_modules/a/test/key.pem web/node_modules/a/.env \
        key keys.ts key.rs monkey.md config.json .docker/Dockerfile .aws/config .kube/cache/x .cargo/config.toml \
        credentials.rs credentials.yml.enc secrets.rs secret.yaml secrets/readme.md .yarnrc.yml .netrc.md settings.json \
        .config/nvim/init.lua";
    for path in ordinary.split_whitespace() {
        assert_eq!(kind(&view, path), AccessKind::Allowed, "{path}");
    }
}

#[test]
fn every_line_denies_or_allows_something() {
    let patterns = RULES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    assert!(patterns.clone().count() > 50);
    let (_dir, root) = workspace(&BY_CONTENT);
    let view = view(&root);
    for pattern in patterns {
        let Some(allowed) = pattern.strip_prefix('!') else {
            let name = pattern.replace("**/", "home/").replace('*', "x");
            assert_eq!(rule(ask(&view, &name)).pattern, pattern);
            continue;
        };
        let name = allowed.replace("**", "x.pem").replace(".env*", ".env.x");
        let name = name.replace("x.pem/", "x/").replace('*', "x");
        assert_eq!(kind(&view, &name), AccessKind::Allowed, "{name}");
    }
}

#[test]
fn lines_of_the_user_come_later() {
    let (_dir, root) = workspace(&BY_CONTENT);
    write(
        &root,
        &[(".clineignore", "!.env\n!*.pem\nca.pem\n.env.test\n")],
    );
    let view = view(&root);
    for path in [".env", "app/.env", "server.pem"] {
        assert_eq!(kind(&view, path), AccessKind::Allowed, "{path}");
    }
    for (path, source) in [
        ("ca.pem", ".clineignore"),
        (".env.test", ".clineignore"),
        (".env.local", "built-in secrets"),
        ("server.key", "built-in secrets"),
    ] {
        assert_eq!(rule(ask(&view, path)).source, source, "{path}");
    }
}

/// A general exception is meant for other files.
#[test]
fn only_lines_that_name_a_secret_allow_it() {
    const SECRETS: [&str; 8] = [
        "tools/.env",
        "tools/.env.local",
        "tools/id_rsa",
        "tools/server.key",
        "tools/.npmrc",
        "tools/.ssh/config",
        "tools/ca.pem",
        "tools/secrets.json",
    ];
    for (lines, allowed) in [
        ("*\n!/tools/\n!/tools/**", ""),
        ("/*\n!/tools/**", ""),
        ("!*", ""),
        ("!**", ""),
        ("!**/*", ""),
        ("!/**", ""),
        ("!tools/*", ""),
        ("!*.*", ""),
        ("!.*", ""),
        ("!tools\n!tools/\n!*/", ""),
        ("!include other", ""),
        ("!id_*\n!*rsa\n!s*\n!*.k?y\n![.]env", ""),
        ("!.env", "tools/.env"),
        ("!.env*", "tools/.env tools/.env.local"),
        ("!.env.*", "tools/.env.local"),
        ("!**/.env", "tools/.env"),
        ("!*/.env", "tools/.env"),
        ("!*.pem", "tools/ca.pem"),
        ("!/tools/*.key", "tools/server.key"),
        ("!tools/server.key", "tools/server.key"),
        ("!id_rsa*", ""),
        ("!id_rsa", "tools/id_rsa"),
        ("!.ssh/", "tools/.ssh/config"),
        ("!.ssh", "tools/.ssh/config"),
        ("!.ssh/**", ""),
        ("!secrets.json", "tools/secrets.json"),
        ("*\n!tools/\n!.env", "tools/.env"),
    ] {
        let (_dir, root) = workspace(&[
            (".clineignore", lines),
            ("other", "!/tools/**\n!.env\n"),
            ("tools/server.key", KEY),
            ("tools/ca.pem", KEY),
            ("tools/.npmrc", "_authToken=a"),
        ]);
        let view = view(&root);
        let asked = SECRETS.into_iter();
        let found: Vec<&str> = asked
            .filter(|path| kind(&view, path) == AccessKind::Allowed)
            .collect();
        assert_eq!(found.join(" "), allowed, "{lines}");
        let lifting = view.lifting_rules(0);
        assert_eq!(
            lifting.is_empty(),
            allowed.is_empty(),
            "{lines}: {lifting:?}"
        );
        for path in found {
            let rule = ask(&view, path).allowed_by.unwrap();
            assert!(lifting.contains(&rule), "{lines}: {rule:?}");
        }
    }
    // Other files are still allowed by general exceptions.
    let (_dir, root) = workspace(&[(".clineignore", "*\n!/tools/\n!/tools/**\n")]);
    let view = view(&root);
    assert_eq!(kind(&view, "tools/a.rs"), AccessKind::Allowed);
    assert_eq!(kind(&view, "a.rs"), AccessKind::Denied);
    assert_eq!(ask(&view, "tools/a.rs").allowed_by, None);
}

/// Editors, merges and file managers write them.
#[test]
fn copies_of_denied_files_are_denied() {
    let lines = "notes.md\n*.bak\nbuild/\nlogs/*.txt\n!logs/open.txt\n!notes.md.orig\n";
    let (_dir, root) = workspace(&BY_CONTENT);
    write(&root, &[(".clineignore", lines)]);
    let view = view(&root);
    for path in [
        ".env~",
        ".env~HEAD",
        "notes.md~feature_x",
        ".env.bak",
        "..env.Xy12Zq",
        "id_rsa.12345.tmp",
        "id_rsa.lock",
        "id_rsa,v",
        "id_rsa.gz",
        "id_rsa-backup",
        "backup-id_rsa",
        "notes.old.md",
        ".notes.md.abcdef",
        "secrets.json.crswap",
        "secrets.json.sb-1a2b3c4d-h2kq9z",
        "secrets.json.part",
        "#.env#",
        ".#.env",
        ".env (copy)",
        ".env copy",
        "Copy of .env",
        ".env.LOCAL.123",
        "id_rsa.bak",
        "id_rsa (conflicted copy)",
        "server.key~",
        "notes.md~",
        ".notes.md.swp",
        "notes (copy).md",
        "NOTES.md.rej",
        "sub/notes.sync-conflict-20260131-1-A.md",
        "a.bak",
        "build/x",
        "logs/a.txt~",
        "prod.env.old",
        "secrets.yml.orig",
        "_netrc.save",
        ".npmrc.tmp",
    ] {
        assert_eq!(kind(&view, path), AccessKind::Denied, "{path}");
    }
    for path in [
        "a",
        "build.rs",
        "build~",
        "logs/open.txt~",
        "other.md~",
        "notes.md.orig",
        "id_rsa.pub",
        "secrets.json.rs",
        "notes.md.html",
        ".env.example",
        "cacert.pem~",
        "README (copy).md",
        "build.orig/x",
        "env~",
    ] {
        assert_eq!(kind(&view, path), AccessKind::Allowed, "{path}");
    }
    assert_eq!(rule(ask(&view, ".env~")).source, "built-in secrets");
    assert_eq!(rule(ask(&view, "notes.md~")).pattern, "notes.md");
}

#[test]
fn a_rule_file_above_the_workspace_folder_allows_nothing() {
    let (_dir, root) = workspace(&[]);
    write(root.parent().unwrap(), &[(".clineignore", "!.env\n")]);
    assert_eq!(kind(&view(&root), ".env"), AccessKind::Denied);
}

/// An agent could otherwise create one that allows secrets.
#[test]
fn the_rule_file_is_denied_before_it_exists() {
    let (_dir, root) = workspace(&[]);
    assert_eq!(kind(&view(&root), ".clineignore"), AccessKind::Denied);
    write(&root, &[(".clineignore", "")]);
    assert_eq!(kind(&view(&root), ".clineignore"), AccessKind::Denied);
}

#[test]
fn secrets_outside_the_workspace_are_denied() {
    let (_dir, root) = workspace(&[]);
    let above = root.parent().unwrap();
    write(above, &[(".ssh/key", "x"), ("notes", "x")]);
    let asked = |view: &AccessView, path: &str| kind(view, &above.join(path).to_string_lossy());
    let denying = view(&root);
    assert_eq!(asked(&denying, ".ssh/key"), AccessKind::Denied);
    assert_eq!(asked(&denying, "other/.env"), AccessKind::Denied);
    assert_eq!(asked(&denying, "notes"), AccessKind::Outside);
    let command = format!("cat {}", above.join(".ssh/key").display());
    assert!(!denying.check_command(&command).allowed);
    let allowing = access(&root, Secrets::Allow).view().0;
    assert_eq!(asked(&allowing, ".ssh/key"), AccessKind::Outside);
    #[cfg(unix)]
    {
        crate::scratch::link("../.ssh/key", root.join("link"));
        assert_eq!(kind(&denying, "link"), AccessKind::Denied);
    }
}

/// The name of a folder above a workspace folder does not matter.
#[test]
fn a_workspace_below_a_denied_name_is_usable() {
    let (_dir, root) = workspace(&[(".ssh/project/a", "x"), (".ssh/project/.env", "x")]);
    let view = view(&root.join(".ssh/project"));
    assert_eq!(kind(&view, "a"), AccessKind::Allowed);
    assert_eq!(kind(&view, ".env"), AccessKind::Denied);
}

#[test]
fn the_setting_allows_secrets() {
    let (_dir, root) = workspace(&[(".clineignore", "x\n"), (".env", "1")]);
    let denying = access(&root, Secrets::Deny);
    let roots = || Arc::new(Roots::new(vec![Root::new(abs(&root), None)]));
    let allowing = denying.updated(roots(), Vec::new(), Secrets::Allow);
    let again = allowing.updated(roots(), Vec::new(), Secrets::Deny);
    for (access, env) in [
        (&denying, AccessKind::Denied),
        (&allowing, AccessKind::Allowed),
        (&again, AccessKind::Denied),
    ] {
        let view = access.view().0;
        assert_eq!(kind(&view, ".env"), env);
        assert_eq!(kind(&view, "x"), AccessKind::Denied);
    }
}

/// Built-in patterns leave the limit of the user's patterns as it is.
#[test]
fn built_in_patterns_do_not_count() {
    let (_dir, root) = workspace(&[(".clineignore", &"a\n".repeat(50_000))]);
    assert_eq!(view(&root).unusable(0), None);
    write(&root, &[(".clineignore", &"a\n".repeat(50_001))]);
    let why = view(&root).unusable(0).unwrap();
    assert!(why.contains("more than 50000 patterns"), "{why}");
}

#[test]
fn commands_that_read_secrets_are_denied() {
    let (_dir, root) = workspace(&[(".env", "1"), ("a", "1"), ("src/b", "1")]);
    let view = view(&root);
    for (command, is_allowed) in [
        ("cat a", true),
        ("cat .env", false),
        ("cat .env.example", true),
        ("grep -r x src", true),
        ("grep -r x .", false),
        ("grep -r --exclude=.env x .", true),
        ("rg x", true),
    ] {
        let verdict = view.check_command(command);
        assert_eq!(verdict.allowed, is_allowed, "{command}: {verdict:?}");
    }
}

/// Variables of the environment move folders of agents.
#[test]
fn tokens_in_moved_folders_are_denied() {
    let (_dir, root) = workspace(&[("in/auth.json", "1"), ("in/config.toml", "1")]);
    let outside = root.parent().unwrap().join("moved");
    write(
        &outside,
        &[("data/settings/p.json", "1"), ("data/p.json", "1")],
    );
    sightline_access::deny_moved_secrets(&[
        (abs(&root.join("in")), "auth.json"),
        (abs(&outside), "data/settings/p.json"),
    ]);
    let denying = view(&root);
    let outside = |path: &str| outside.join(path).to_string_lossy().into_owned();
    for (path, access) in [
        ("in/auth.json".to_owned(), AccessKind::Denied),
        ("in/auth.json.bak".to_owned(), AccessKind::Denied),
        ("in/config.toml".to_owned(), AccessKind::Allowed),
        ("auth.json".to_owned(), AccessKind::Allowed),
        (outside("data/settings/p.json"), AccessKind::Denied),
        (outside("data/p.json"), AccessKind::Outside),
    ] {
        assert_eq!(kind(&denying, &path), access, "{path}");
    }
    assert!(!denying.check_command("grep -r x in").allowed);
    let allowing = access(&root, Secrets::Allow).view().0;
    assert_eq!(kind(&allowing, "in/auth.json"), AccessKind::Allowed);
    let rule = rule(ask(&denying, "in/auth.json"));
    let line = RULES.lines().nth(rule.line as usize - 1).unwrap();
    assert_eq!(line, "# Tokens of coding agents.");
}

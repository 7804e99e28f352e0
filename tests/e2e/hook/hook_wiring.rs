//! `sightline hook` refuses changes of what keeps it in force.

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::harness::{Workspace, program};

/// A home with configured agents, and a workspace in it.
struct Home {
    workspace: Workspace,
    home: PathBuf,
}

impl Home {
    fn new() -> Self {
        let workspace = Workspace::new(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".claude/settings.json", "{\"hooks\": {}}\n"),
            (".claude/commands/x.md", "x\n"),
            (".mcp.json", "{}\n"),
            ("README.md", "r\n"),
            ("home/.claude/settings.json", "{}\n"),
            ("home/.claude.json", r#"{"mcpServers": {"sightline": {}}}"#),
            ("home/.codex/hooks.json", "{}\n"),
            ("home/.copilot/hooks/sightline.json", "{}\n"),
            ("home/.config/sightline/config.toml", ""),
            ("home/.bashrc", "x\n"),
        ]);
        let home = workspace.path("home");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        let link = home.join("bin/sightline");
        std::fs::write(&link, "program").unwrap();
        std::fs::set_permissions(link, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { workspace, home }
    }

    /// Returns the reason if Claude Code's hook refuses a call.
    fn refusal(&self, tool: &str, arguments: &Value) -> Option<String> {
        let arguments = arguments
            .to_string()
            .replace("HOME", self.home.to_str().unwrap());
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        let input = json!({
            "cwd": self.workspace.root(), "tool_name": tool, "tool_input": arguments,
        });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.home.join("bin")).chain(std::env::split_paths(&path));
        let mut child = program()
            .args(["hook", "PreToolUse", "--agent", "claude", "--storage"])
            .arg(self.workspace.data())
            .env("HOME", &self.home)
            .env("PATH", std::env::join_paths(path).unwrap())
            // As bash sets it for a program that it runs.
            .env("_", self.home.join("bin/sightline"))
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(self.workspace.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason")?;
        Some(reason.as_str()?.to_owned())
    }

    fn command_refusal(&self, line: &str) -> Option<String> {
        self.refusal("Bash", &json!({ "command": line }))
    }
}

#[test]
fn items_of_a_pipe_of_powershell_are_not_this_program() {
    let home = Home::new();
    for line in [
        "ls src | % { node $_ }",
        "gci src | ForEach-Object { npx eslint $_ }",
        "dir src | % { \"$_\" }",
        "ls src | % { [IO.File]::ReadAllText($_) }",
    ] {
        let refusal = home.refusal("Bash", &json!({ "command": line }));
        assert_eq!(refusal, None, "{line}");
    }
}

#[test]
fn files_that_keep_hooks_in_force_cannot_be_written() {
    let home = Home::new();
    let data = home.workspace.data().join("agents.json");
    for path in [
        "HOME/.claude/settings.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
        "sub/../.claude/settings.local.json",
        "HOME/.claude.json",
        "HOME/.codex/hooks.json",
        "HOME/.codex/config.toml",
        "HOME/.gemini/settings.json",
        ".gemini/settings.json",
        "HOME/.qwen/settings.json",
        "HOME/.copilot/hooks/sightline.json",
        ".github/hooks/sightline.json",
        "HOME/.config/opencode/plugins/sightline.js",
        "HOME/.cline/plugins/sightline.js",
        "HOME/bin/sightline",
        data.to_str().unwrap(),
    ] {
        for (tool, arguments) in [
            ("Write", json!({ "file_path": path, "content": "{}" })),
            (
                "Edit",
                json!({ "file_path": path, "old_string": "a", "new_string": "b" }),
            ),
            ("MultiEdit", json!({ "file_path": path, "edits": [] })),
            (
                "NotebookEdit",
                json!({ "notebook_path": path, "new_source": "" }),
            ),
            (
                "mcp__fs__write_file",
                json!({ "path": path, "content": "{}" }),
            ),
            (
                "mcp__fs__move_file",
                json!({ "source": "README.md", "destination": path }),
            ),
            (
                "apply_patch",
                json!({ "input": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch") }),
            ),
            (
                "Bash",
                json!({ "command": format!("echo '{{}}' > {path}") }),
            ),
            (
                "Bash",
                json!({ "command": format!("sed -i s/PreToolUse/x/ {path}") }),
            ),
            ("Bash", json!({ "command": format!("rm -f {path}") })),
            ("Bash", json!({ "command": format!("mv README.md {path}") })),
            (
                "Bash",
                json!({ "command": format!("cat README.md | tee {path}") }),
            ),
            (
                "Bash",
                json!({ "command": format!("git checkout -- {path}") }),
            ),
        ] {
            let reason = home.refusal(tool, &arguments).unwrap_or_default();
            assert!(reason.contains("the user"), "{tool} {arguments}: {reason}");
        }
    }
    for line in [
        "git apply <<'E'\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-{}\n+[]\nE",
        "patch -p1 <<'E'\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-{}\n+[]\nE",
        "HOME/bin/sight* uninstall --yes",
        "rm -rf HOME/.claude",
        "rm -rf .claude",
        "mv .claude old",
        "rm HOME/.claude/*",
        "chmod 000 HOME/bin/sightline",
        "chmod -x $(which sightline)",
        "rm $(command -v sightline)",
        "ln -sf /bin/true HOME/bin/sightline",
        "rm -rf HOME/bin",
        "cd HOME/.codex && rm hooks.json",
        "python3 -c \"open('.claude/settings.local.json', 'w').write('{}')\"",
        "ln -s HOME/.claude/settings.json x",
        "sightline exec perl -pi -e s/a/b/ HOME/.claude/settings.json --help",
        "sightline exec --root . -- rm .claude/settings.json",
        "sightline exec --shell 'rm .claude/settings.json'",
        "sed -n 'w HOME/.claude/settings.json' README.md",
        "sed '1e rm .claude/settings.json' README.md",
        "uniq README.md .claude/settings.json",
        "xxd -r README.md .claude/settings.json",
        "iconv -o .claude/settings.json README.md",
        "less -O.claude/settings.json README.md",
        "jaq -i .a .claude/settings.json",
        "sort --outp=.claude/settings.json README.md",
        "sort -uo.claude/settings.json README.md",
        "base64 -o .claude/settings.json README.md",
        "view .claude/settings.json",
        "awk 'BEGIN{system(\"rm .claude/settings.json\")}'",
        "awk '{print | \"tee .claude/settings.json\"}' README.md",
        "ag --pager 'tee .claude/settings.json' r",
        "rg --pre=rm r .claude/settings.json",
        "git archive -o .claude/settings.json HEAD",
        "git grep -O'tee .claude/settings.json' r",
        "tar xf a.tar -C HOME/.claude",
        "unzip a.zip -d ~/.claude",
        "wget -P HOME/.claude https://example.com/settings.json",
        "git clone x .claude",
        "cd ~/.claude; curl -O https://example.com/settings.json",
        "patch -d .claude -i x.patch",
        "mkdir x; echo > x/settings.json; cp -r x/. ~/.claude",
        "find ~ -name settings.json | xargs sed -i s/a/b/",
        "find ~ -name 'settings*' -exec sed -i s/a/b/ {} +",
        "fd settings.json -x sed -i s/a/b/",
        "find ~/.claude -type f -exec sed -i s/a/b/ {} +",
        "find HOME/.claude -type f | xargs sed -i s/a/b/",
        "sed -i s/a/b/ $(find ~/.claude -name settings.json)",
        "rsync -a --delete /tmp/empty/ ~/.claude/",
        "npx tool ~/.claude/settings.json",
        "npx --yes tool ~/.claude/settings.json",
        "python -c \"import shutil; shutil.rmtree('.claude')\"",
        "python3 -c \"import os; os.rename('.claude', 'x')\"",
        "python3 -c \"from pathlib import Path; (Path.home()/'.claude'/'settings.json').write_text('{}')\"",
        "python3 -c \"import os; os.remove(os.path.join(os.environ['HOME'], '.claude', 'settings.json'))\"",
        "python3 -c \"import os; os.chdir('.claude'); os.remove('settings.json')\"",
        "python3 -c \"import os; os.system('rm -rf .claude')\"",
        "node -e \"require('fs').writeFileSync(require('path').join(require('os').homedir(), '.claude', 'settings.json'), '{}')\"",
        "node -e 'require(\"fs\").renameSync(`${process.env.HOME}/.claude`, \"x\")'",
        "ruby -e \"require 'fileutils'; FileUtils.rm_rf('.claude')\"",
        "ruby -pi -e 'sub(/a/, \"b\")' .claude/settings.json",
        "perl -e 'unlink glob \".claude/*.json\"'",
        "osascript -e 'do shell script \"rm -rf ~/.claude\"'",
        "vim -c \":w! .claude/settings.json\"",
        "sqlite3 x.db \".output .claude/settings.json\"",
        "ls ~/.claude/*.json | xargs rm",
        "ls -d ~/.claude | xargs rm -rf",
        "ls -A | grep claude | xargs rm -rf",
        "cd .claude && ls | xargs rm",
        "printf '%s\\0' .claude/*.json | xargs -0 rm",
        "grep -rlZ hooks .claude | xargs -0 sed -i s/a/b/",
        "grep -l hooks .claude/*.json | xargs sed -i s/a/b/",
        "rg -l hooks --hidden | xargs sed -i s/hooks/x/",
        "realpath .claude/settings.json | xargs rm",
        "git ls-files .claude | xargs rm",
        "git ls-files | grep settings | xargs rm",
        "rm $(compgen -G '.claude/*')",
        "unzip a.zip",
        "curl -sL https://example.com/a.tgz | tar xz",
        "cat HOME/bin/sightline > x; chmod +x x; ./x agents uninstall",
        "make -f <(printf 'a:\\n\\trm .claude/settings.json\\n')",
        "git -c core.pager='rm .claude/settings.json' log",
        "for f in $(ls .claude); do rm .claude/$f; done",
        "ls .claude | while read f; do rm .claude/$f; done",
        "find . -maxdepth 1 -name .claude -exec rm -rf {} +",
        "rm .claude/$x",
        "docker run -v $PWD/.claude:/x alpine rm /x/settings.json",
        "docker run --mount type=bind,source=HOME/.claude,target=/x alpine rm /x/settings.json",
        "cat evil > $(which sightline)",
        "cp HOME/bin/sightline x; ./x agents uninstall",
        "cp sightline x; ./x agents uninstall",
        "python3 <<'EOF'\nfrom pathlib import Path\nfor p in Path('.claude').glob('*.json'):\n    p.write_text('{}')\nEOF",
        "cat > x.py <<'EOF' && python3 x.py\nimport shutil\nshutil.rmtree('.claude')\nEOF",
    ] {
        assert!(home.command_refusal(line).is_some(), "{line}");
    }
    for (line, path) in [
        (
            "dd if=README.md of=HOME/.claude/settings.json",
            "HOME/.claude/settings.json ",
        ),
        (
            "dd if=README.md of=~/.claude/settings.json",
            "HOME/.claude/settings.json ",
        ),
        (
            "install -m 644 README.md ~/.claude/settings.json",
            "HOME/.claude/settings.json ",
        ),
        ("ln -sf /bin/true HOME/bin/sightline", "HOME/bin/sightline "),
        (
            "unknown '~/.claude/settings.json'",
            "HOME/.claude/settings.json ",
        ),
    ] {
        let reason = home.command_refusal(line).unwrap_or_default();
        let path = path.replace("HOME", home.home.to_str().unwrap());
        assert!(reason.starts_with(&path), "{line}: {reason}");
    }
    let removed = json!({ "path": "HOME/.claude" });
    assert!(
        home.refusal("mcp__fs__delete_directory", &removed)
            .is_some()
    );
}

#[test]
fn other_uses_of_these_files_are_not_refused() {
    let home = Home::new();
    for (tool, arguments) in [
        ("Read", json!({ "file_path": "HOME/.claude/settings.json" })),
        ("Read", json!({ "file_path": ".claude/settings.json" })),
        ("Grep", json!({ "pattern": "hooks", "path": ".claude" })),
        ("Glob", json!({ "pattern": ".claude/*.json" })),
        (
            "mcp__fs__read_text_file",
            json!({ "path": ".claude/settings.json" }),
        ),
        (
            "Write",
            json!({ "file_path": ".claude/commands/x.md", "content": "x" }),
        ),
        (
            "Write",
            json!({ "file_path": ".claude/skills/a/SKILL.md", "content": "settings.json" }),
        ),
        (
            "Write",
            json!({ "file_path": ".claude/agents/a.md", "content": "x" }),
        ),
        (
            "Write",
            json!({ "file_path": ".mcp.json", "content": "{}" }),
        ),
        (
            "Write",
            json!({ "file_path": "CLAUDE.md", "content": ".claude/settings.json" }),
        ),
        (
            "Write",
            json!({ "file_path": ".vscode/settings.json", "content": "{}" }),
        ),
        (
            "Edit",
            json!({ "file_path": "HOME/.bashrc", "old_string": "x", "new_string": "y" }),
        ),
        (
            "TodoWrite",
            json!({ "todos": [{ "content": "edit .claude/settings.json", "status": "pending" }] }),
        ),
    ] {
        assert_eq!(home.refusal(tool, &arguments), None, "{tool} {arguments}");
    }
    for line in [
        "cat HOME/.claude/settings.json",
        "jq .hooks .claude/settings.json",
        "ls -la .claude HOME/.claude",
        "git add .claude/settings.json",
        "git commit -m 'sightline uninstall'",
        "git diff HEAD -- .claude/settings.json",
        "grep -rn sightline README.md",
        "cp .claude/settings.json backup.json",
        "mkdir -p .claude/commands && echo x > .claude/commands/y.md",
        "rm .claude/commands/x.md",
        "which sightline && ls -l HOME/bin/sightline",
        "cargo install ripgrep",
        "cargo test -p sightline",
        "echo sightline uninstall",
        "claude mcp list",
        "rm -rf node_modules target",
        "rm -r node_modules",
        "chmod -R u+w .",
        "sed -n 1,20p .claude/settings.json",
        "sed -n '/hooks/,$p' .claude/settings.json",
        "sed -i s/a/b/ README.md",
        "awk -F: '/hooks/ {print $2}' .claude/settings.json",
        "sort -u .claude/settings.json | uniq -c",
        "rg -n hooks .claude/settings.json",
        "find . -name '*.pyc' -delete",
        "find . -name settings.json | xargs grep hooks",
        "find . -name '*.md' | xargs sed -i s/a/b/",
        "tar xf a.tar -C vendor && unzip a.zip -d vendor",
        "tar czf backup.tgz README.md",
        "curl -o /usr/local/bin/x https://example.com/x",
        "npx prettier --write .",
        "git clone https://github.com/example/sightline",
        "make -C HOME/bin test",
        "man sightline",
        "cat README.md | python3 -c \"import sys, json; json.load(sys.stdin)['sightline']\"",
        "gh pr create --title 'sightline uninstall'",
        "mkdir -p .claude && cp -r README.md .claude/commands/",
        "claude -p 'summarize README.md'",
        "CLAUDE_CONFIG_DIR=/new npm test",
        "find . -type f -name '*.rs' -exec sed -i s/a/b/ {} +",
        "rsync -a --delete docs/ site/",
        "python3 -c \"print(open('.claude/settings.json').read())\"",
        "python3 -c \"import json,os; print(json.dumps(json.load(open(os.path.expanduser('~/.claude/settings.json')))))\"",
        "python3 -c \"import os; print(os.listdir('.claude'), os.path.exists('.claude/settings.json'))\"",
        "python3 -c \"import subprocess; subprocess.run(['git','diff','HEAD','--','.claude/settings.json'])\"",
        "python3 -c \"from pathlib import Path; (Path('.claude') / 'commands' / 'y.md').write_text('x')\"",
        "python3 -c \"import sys; sys.stdout.write(open('.claude/settings.json').read())\"",
        "node -p \"require('./.claude/settings.json')\"",
        "node -e \"require('fs').readFile('.claude/settings.json', (e, t) => console.log(t))\"",
        "ruby -rjson -e \"puts JSON.parse(File.read('.claude/settings.json'))\"",
        "perl -ne 'print if /hooks/' .claude/settings.json",
        "ls .claude/*.json | xargs cat",
        "ls .claude/commands | xargs -I{} rm .claude/commands/{}",
        "ls src | xargs rm -rf",
        "for f in $(ls .claude); do cat .claude/$f; done",
        "for f in docs/*.md; do sed -i 's/sightline/x/' \"$f\"; done",
        "grep -rln hooks .claude",
        "grep -rl foo . | xargs sed -i s/foo/bar/",
        "rg -l hooks | xargs sed -i s/foo/bar/",
        "find . -type d -empty -delete",
        "find . -type d -exec chmod 755 {} +",
        "rm -f \"$x\" build/$x",
        "docker run --rm -v $PWD:/work -w /work node:20 npm test",
        "docker run --rm -v ~/.claude:/x:ro alpine ls /x",
        "git commit -m \"$(ls .claude)\"",
        "cp -r $(ls -A | grep -v node_modules) /tmp/backup",
        "python3 - <<'EOF'\nopen('README.md', 'w').write('see .claude/settings.json')\nEOF",
        "python3 <<'EOF'\nimport json\nwith open('.claude/settings.json') as f:\n    print(json.load(f))\nEOF",
        "python3 <<'EOF'\nimport os\nfor root, dirs, files in os.walk('.'):\n    dirs[:] = [d for d in dirs if d not in ('.git', '.claude')]\n    for name in files:\n        open(name, 'a').write('x')\nEOF",
    ] {
        assert_eq!(home.command_refusal(line), None, "{line}");
    }
}

#[test]
fn agents_run_only_listed_commands_of_the_program() {
    let home = Home::new();
    for line in [
        "sightline agents uninstall --yes",
        "sightline agents install --only mcp --yes",
        "sightline uninstall --data --yes",
        "sightline checkpoint prune --yes",
        "sightline checkpoint restore last -y",
        "sightline init",
        "sightline not-yet-known",
        "HOME/bin/sightline agents uninstall -y",
        "env -i sightline uninstall",
        "sudo sightline uninstall",
        "sh -c 'sightline uninstall'",
        "echo uninstall | xargs sightline",
        "command sightline uninstall",
        "true; exec sightline uninstall",
        "$(which sightline) uninstall",
        "echo 'sightline uninstall' | sh",
        "cargo uninstall sightline",
        "npm uninstall -g sightline",
        "claude mcp remove sightline",
        "sightline",
        "echo x | sightline --stdio",
        "sightline --log x --stdio",
        "sightline mcp",
        "sightline mcp --root .",
        "sightline uninstall --yes --help",
        "sightline exec sightline uninstall",
        "sightline exec --help sightline uninstall",
        "systemd-run --user sightline uninstall",
        "unbuffer HOME/bin/sightline uninstall",
        "runuser -u x -- sightline uninstall",
        "npx sightline@1 uninstall",
        "script -c 'sightline uninstall' /dev/null",
        "alias s=sightline; s uninstall",
        "claude -p --settings '{\"disableAllHooks\": true}' x",
        "CLAUDE_CONFIG_DIR=HOME/new claude -p x",
        "export CLAUDE_CONFIG_DIR=/new; cd src && claude -p x",
        "env CLAUDE_CONFIG_DIR=/new claude -p x",
        "npx -y @anthropic-ai/claude-code --bare -p x",
        "sh -c 'codex exec -c features.hooks=false x'",
        "gdb --args sightline agents uninstall",
        "lldb -- sightline agents uninstall",
        "npx sightline agents install --yes",
        "cargo run -p sightline -- checkpoint prune --yes",
        "docker run x sightline uninstall",
        "python3 -c \"import subprocess; subprocess.run(['sightline','agents','uninstall','--yes'])\"",
        "env --unset=USERPROFILE claude",
        "env -u USERPROFILE claude -p x",
        "unset USERPROFILE; claude -p x",
        "sudo -H -u x claude -p x",
    ] {
        let reason = home.command_refusal(line).unwrap_or_default();
        assert!(reason.contains("at a terminal"), "{line}: {reason}");
    }
    let reason = home.command_refusal("sudo sightline agents uninstall --yes");
    assert!(
        reason
            .unwrap()
            .contains("terminal: sightline agents uninstall --yes")
    );
    for line in [
        "sightline access README.md",
        "sightline access .env",
        "sightline access --command 'cat .env'",
        "sightline checkpoint diff last -- .env",
        "sightline checkpoint list",
        "sightline checkpoint create --label x && sightline checkpoint diff last",
        "sightline environment --files | head",
        "sightline --version",
        "sightline agents uninstall --help",
        "sightline --help",
        "sightline mcp --read-only",
        "sightline exec cat README.md",
        "sightline exec --shell 'cat README.md'",
        "systemd-run --user sightline doctor",
        "sightline doctor",
        "HOME/bin/sightline task list",
        "npm run sightline",
        "cargo run -p sightline",
        "cargo run -p sightline -- --help",
        "cargo run -p sightline -- access README.md",
        "cargo add sightline-core",
        "cargo add serde -p sightline",
        "npm install sightline-colors @sightline-labs/ui",
        "npm install --prefix clients/sightline",
        "pip install -r sightline/requirements.txt",
        "pnpm --filter sightline run build",
        "npx vitest run sightline",
        "docker build -t sightline .",
        "docker compose up -d sightline",
        "kubectl logs deploy/sightline",
        "command -v sightline",
        "python3 -c \"import subprocess; print(subprocess.check_output(['sightline','--version']))\"",
    ] {
        assert_eq!(home.command_refusal(line), None, "{line}");
    }
}

/// A link to a folder with configuration is the folder.
#[cfg(unix)]
#[test]
fn links_to_these_files_are_followed() {
    use std::os::unix::fs::symlink;

    let home = Home::new();
    let real: &Path = &home.workspace.path("dotfiles");
    std::fs::rename(home.home.join(".claude"), real).unwrap();
    symlink(real, home.home.join(".claude")).unwrap();
    symlink(
        home.workspace.path(".claude/settings.json"),
        home.workspace.path("alias"),
    )
    .unwrap();
    for path in [
        "dotfiles/settings.json",
        "HOME/.claude/settings.json",
        "alias",
    ] {
        let arguments = json!({ "file_path": path, "content": "{}" });
        assert!(home.refusal("Write", &arguments).is_some(), "{path}");
        assert!(
            home.command_refusal(&format!("echo > {path}")).is_some(),
            "{path}"
        );
    }
    assert!(home.command_refusal("rm -rf dotfiles").is_some());
}

/// A copy that an earlier command made, or a link, is the program whatever it is called.
#[cfg(unix)]
#[test]
fn the_program_is_known_by_its_content() {
    use std::os::unix::fs::symlink;

    let home = Home::new();
    let root = home.workspace.root();
    let program = env!("CARGO_BIN_EXE_sightline");
    std::fs::copy(program, root.join("copy")).unwrap();
    symlink("copy", root.join("linked")).unwrap();
    std::fs::copy("/bin/true", root.join("other")).unwrap();
    for line in [
        "./copy agents uninstall --yes",
        "./linked uninstall --data --yes",
        "PATH=ROOT copy agents uninstall --yes",
        "cd HOME; ROOT/copy checkpoint prune --yes",
        "env -i ROOT/copy agents uninstall --yes",
    ] {
        let line = line.replace("ROOT", root.to_str().unwrap());
        let reason = home.command_refusal(&line).unwrap_or_default();
        assert!(reason.contains("at a terminal"), "{line}: {reason}");
    }
    for line in [
        "./copy doctor",
        "./other agents uninstall --yes",
        "ls -l copy",
    ] {
        assert_eq!(home.command_refusal(line), None, "{line}");
    }
}

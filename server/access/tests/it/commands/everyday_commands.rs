//! Checks everyday commands, which read no denied file.

use std::path::Path;

use sightline_testing::git;

use super::{
    command_git::assert_refused,
    command_readers::{assert_all_allowed, tracked, untracked},
    workspace,
};

/// Everyday commands.
const EVERYDAY: &[&str] = &[
    // Names as patterns, exclusions, messages, or in metadata queries.
    "grep .env README.md",
    "grep -n '.env' README.md docs/guide.md",
    "grep -e .env README.md",
    "grep -c --regexp=.env README.md",
    "cat README.md | grep .env",
    "git ls-files | grep .env",
    "ls -a | grep -v .env",
    "grep -rn .env src docs",
    "grep -A 3 .env README.md",
    "timeout 5 grep .env README.md",
    "rg .env README.md",
    "rg -F .env src",
    "rg -e .env -e secrets/ src",
    "ag .env docs",
    "[ -f .env ]",
    "[ -f .env ] && echo there",
    "[ ! -e secrets/token.txt ] || echo there",
    "[[ -f .env ]] && echo there",
    "test -e .env",
    "test -s .env && echo yes",
    "if [ -f .env ]; then echo yes; else echo no; fi",
    "ls -I .env",
    "ls --ignore=.env -a",
    "tree -I '.env|node_modules'",
    "tree -I .env",
    "du -sh --exclude=.env .",
    "rsync -a --exclude=.env src/ /tmp/x",
    "tar czf x.tgz --exclude=.env src",
    "prettier --check . --ignore-pattern=.env",
    "eslint --ignore-pattern=secrets/ src",
    "fd -E .env rs src",
    "git check-ignore .env",
    "git check-ignore -v secrets/token.txt",
    "git commit -m 'ignore .env'",
    "git commit -m .env",
    "git commit -am 'fix: .env is read once'",
    "git commit --message=\"docs: (.env) and secrets/\"",
    "git tag -a v1 -m 'without .env'",
    "git stash push -m .env",
    "git log --grep .env",
    "git log -S .env --oneline",
    "git log --oneline -S.env",
    "git add . ':!.env'",
    "git status -- ':!secrets'",
    "gh pr create --title 'Drop .env' --body 'cat .env is refused now'",
    "gh issue create -t .env -b 'see `.env`'",
    "echo .env",
    "echo .env >> .gitignore",
    "printf '%s\\n' .env secrets/ >> .gitignore",
    "echo 'KEY is in .env' | tee -a README.md",
    "sed -i '/^.env$/d' .gitignore",
    "sed 's/.env/.env.example/' README.md",
    "sed -n -e '/.env/p' README.md",
    "jq .env package.json",
    "jq -r '.env' package.json",
    "cat .env.example",
    "cp .env.example .env.local",
    "git diff .gitignore",
    // Builds, tests, packages.
    "cargo build --release",
    "cargo test -p core --test basic -- --nocapture",
    "cargo clippy --all-targets -- -D warnings",
    "cargo fmt --all -- --check",
    "cargo run -- --config config.toml",
    "RUST_LOG=debug cargo test 2>&1 | tail -50",
    "cargo test 2>&1 | rg FAILED",
    "npm ci && npm run build",
    "npm test -- --watch=false",
    "npx eslint src --fix",
    "NODE_ENV=production node server.js",
    "yarn workspace app build",
    "pnpm -r test",
    "pip install -r requirements.txt",
    "python -m pytest -q tests",
    "python3 -c 'import sys; print(sys.version)'",
    "python manage.py migrate",
    "uv run pytest -x",
    "go test ./...",
    "go build -o bin/app ./cmd/app",
    "make -j8 test",
    "make clean && make",
    "mvn -q -DskipTests package",
    "./gradlew build",
    "docker build -t app .",
    "docker compose up -d",
    "docker run --rm -v $PWD/src:/w x ls /w",
    "docker run --rm -v $PWD:/w -w /w rust cargo test",
    "bundle exec rspec",
    "terraform plan",
    // Git.
    "git status",
    "git status --short --branch",
    "git diff",
    "git diff --cached",
    "git diff HEAD~1",
    "git show",
    "git show HEAD --stat",
    "git log -p -2",
    "git log --oneline --graph --all",
    "git grep -n main",
    "git add -A",
    "git add src && git commit -m 'Add it'",
    "git commit --amend --no-edit",
    "git checkout -b feature",
    "git switch main && git pull --rebase",
    "git stash && git stash pop",
    "git stash show -p",
    "git archive HEAD | tar -t",
    "git rebase -i HEAD~3",
    "git push -u origin HEAD",
    "git fetch --all --prune",
    "git blame src/main.rs",
    "git rev-parse --show-toplevel",
    "git ls-files | xargs wc -l",
    "git worktree add ../other main",
    "git bisect start",
    // Inspection.
    "ls -la",
    "ls -R src",
    "ls *.md",
    "pwd && ls",
    "cat README.md",
    "head -50 src/main.rs | tail -20",
    "sed -n '1,40p' src/main.rs",
    "awk '{print $1}' README.md",
    "wc -l src/*.rs",
    "tail -f log.txt",
    "du -sh *.json",
    "tree -L 2",
    "which node && node --version",
    "ps aux | grep node",
    "env | sort",
    "curl -s https://example.org/api | jq .name",
    "diff src/main.rs tests/basic.rs",
    "for f in src/*.rs; do echo \"$f\"; done",
    "while read -r line; do echo \"$line\"; done < README.md",
    "cat > docs/new.md <<'EOF'\nPut KEY into .env, never into git.\nEOF",
    "kill $(lsof -t -i:3000)",
    "mkdir -p out && cp README.md out/",
    "export PATH=$PATH:./node_modules/.bin",
    "PAGER=cat git log -3",
    "GIT_EDITOR=true git rebase --continue",
    "sudo systemctl restart nginx",
    "ssh host 'systemctl status app'",
    "date +%s",
    "true",
];

#[test]
fn everyday_commands_are_allowed() {
    assert!(EVERYDAY.len() >= 100, "{}", EVERYDAY.len());
    assert_all_allowed(&untracked(), EVERYDAY);
}

/// Displaying a command must not reveal a denied name.
#[test]
fn displayed_commands_name_no_denied_file() {
    let workspace = untracked();
    for command in [
        "grep .env README.md",
        "[ -f .env ]",
        "[[ -f .env ]]",
        "ls --ignore=.env",
        "find . -not -name .env",
        "f() { echo hi; }; f .env",
    ] {
        assert!(workspace.check(command).allowed, "{command}");
        assert!(!workspace.view.may_show_command(command), "{command}");
    }
    for command in ["grep -r KEY .", "tar czf x.tgz .", "git show"] {
        assert!(workspace.view.may_show_command(command), "{command}");
    }
}

/// The rule names the whole path: no part of it alone is denied.
#[test]
fn paths_that_code_joins_are_judged() {
    let workspace = workspace();
    for code in [
        "d = Path('conf'); print((d / 'inner.txt').read_text())",
        "d = Path('conf'); print(d.joinpath('inner.txt').read_text())",
        "d = 'conf'; print(open(d + '/inner.txt').read())",
        "d = 'conf'; print(open(f'{d}/inner.txt').read())",
        "d = 'conf'; print(open(os.path.join(d, 'inner.txt')).read())",
        "print(open(os.path.join('.', 'conf', 'inner.txt')).read())",
        "a = 'conf'; b = f'{a}/inner.txt'; c = Path(a) / 'x'; print(open(b).read())",
        "print(open('conf/' + 'inner.txt').read())",
        "print(open('/'.join(('conf', 'inner.txt'))).read())",
        "print(Path('conf', 'inner.txt').read_text())",
        "print(open(os.path.join(dirname(dirname(os.path.abspath(f()))), 'conf', 'inner.txt')).read())",
        "const dir = 'conf'; console.log(fs.readFileSync(`${dir}/inner.txt`))",
    ] {
        let script = format!("node <<'EOF'\n{code}\nEOF");
        let answer = workspace.view.check_command(&script);
        assert!(answer.denied[0].path.ends_with("conf/inner.txt"), "{code}");
        let other = script.replace("inner", "outer");
        assert!(workspace.view.check_command(&other).allowed, "{code}");
    }
}

/// An alias of the configuration runs another command.
#[test]
fn aliases_of_the_configuration_are_followed() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    for (name, value) in [
        ("old", "show HEAD:.env"),
        ("own", "!cat .env"),
        ("st", "status -s"),
    ] {
        git::run(root, &["config", &format!("alias.{name}"), value]);
    }
    assert_refused(
        &workspace,
        &["git old", "git -C src own", "git own | tee x"],
    );
    assert_all_allowed(&workspace, &["git st", "git -C src st", "git other"]);
}

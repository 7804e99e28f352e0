use std::{
    path::{Path, PathBuf},
    process::Command,
};

use sightline_testing::git;

use super::{Change, CommandGuard, guard_command};

/// Protects `conf/key.json` and `bin/tool` in a folder, and lets `tool` run with `show` only.
struct TestGuard(PathBuf);

impl CommandGuard for TestGuard {
    fn places(&self) -> Vec<PathBuf> {
        ["conf/key.json", "bin/tool"]
            .map(|path| self.0.join(path))
            .to_vec()
    }

    fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
        let is_program = path == self.0.join("bin/tool") && change != Change::Folder;
        let is_config = path == self.0.join("conf/key.json") && change != Change::Copy;
        (is_program || is_config).then(|| "changed".to_owned())
    }

    fn run_refusal(&self, words: &[Option<&str>], is_certain: bool) -> Option<String> {
        let is_tool = words[0].is_some_and(|word| Path::new(word).ends_with("tool"));
        let second = words.iter().skip(1).find(|word| **word != Some("--"))?;
        let is_refused = if is_certain {
            *second != Some("show")
        } else {
            *second == Some("hide")
        };
        (is_tool && is_refused).then(|| "run".to_owned())
    }

    fn program_name(&self, path: &Path) -> Option<&'static str> {
        path.ends_with("copy").then_some("tool")
    }
}

fn refuses(line: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for dir in ["conf", "bin", "other/conf", "new"] {
        std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    for file in [
        "conf/key.json",
        "bin/tool",
        "other/conf/key.json",
        "a.txt",
        "new/key.json",
    ] {
        std::fs::write(folder.path().join(file), "x").unwrap();
    }
    let real = sightline_base::path::canonicalize(folder.path()).unwrap();
    if line.contains("git ") {
        git::run(&real, &["init", "-q"]);
        git::run(&real, &["add", "."]);
        git::run(&real, &["commit", "-qm", "first"]);
        std::fs::write(real.join("a.txt"), "y").unwrap();
    }
    for (archive, file) in [("own.tar", "conf/key.json"), ("other.tar", "a.txt")] {
        let tar = ["-cf", archive, file];
        let made = Command::new("tar").args(tar).current_dir(&real).status();
        assert!(made.unwrap().success());
        let patch = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-x\n+y\n");
        std::fs::write(real.join(archive).with_extension("patch"), patch).unwrap();
    }
    guard_command(
        &line.replace("ROOT", real.to_str().unwrap()),
        &real,
        &TestGuard(real.clone()),
    )
}

#[test]
fn protected_files_are_not_changed() {
    let passed = [
        "echo x > conf/key.json",
        "cd conf && echo x >> key.json",
        "cat a.txt | tee ROOT/conf/key.json",
        "sed -i s/a/b/ conf/key.json",
        "sed -ni p conf/key.json",
        "rm conf/key.json",
        "rm conf/*.json",
        "rm -rf conf",
        "rm -rf ./*",
        "mv conf elsewhere",
        "mv a.txt conf/key.json",
        "cp new/key.json conf/",
        "cp new/* conf",
        "cp -t conf new/key.json",
        "cp -r other/conf .",
        "ln -sf ROOT/other conf/key.json",
        "ln conf/key.json alias",
        "chmod 000 conf",
        "chmod 644 conf/key.json",
        "git checkout -- conf/key.json",
        "git rm --cached conf/key.json",
        "python3 -c \"open('conf/key.json', 'w')\"",
        "python3 <<'EOF'\nopen('conf/key.json', 'w').write('')\nEOF",
        "f=conf/key.json; truncate -s 0 $f",
        "for f in conf/*; do unlink $f; done",
        "echo conf/key.json | xargs rm",
        "find conf -name key.json -delete",
        "sudo env A=1 rm conf/key.json",
        "bash -c 'rm conf/key.json'",
        "dd if=a.txt of=conf/key.json",
        "sort -o conf/key.json a.txt",
        "jq . a.txt > a && mv a conf/key.json",
        "unknown-program conf/key.json",
        "cp /bin/true bin/tool",
        "ln -sf /bin/true bin/tool",
        "cp bin/tool other-name",
        "rm conf/key.json (",
        "rsync -a --delete new/ conf/",
        "npx --yes tidy conf/key.json",
        "npx prettier --check --write conf/key.json",
        "prettier -w conf/key.json",
        "eslint -o conf/key.json a.txt",
        "black conf/key.json",
        "find conf -type f -exec sed -i s/a/b/ {} +",
        "find . -not -path './other/*' -exec sed -i s/a/b/ {} +",
        "find conf -exec truncate -s 0 {} ;",
        "find conf -type f | xargs sed -i s/a/b/",
        "find conf -name '*.json' | xargs chmod 000",
        "find conf -type d -exec cp new/key.json {} ;",
        "find conf -maxdepth 0 -exec tar xf a.tar -C {} ;",
        "sed -i s/a/b/ $(find conf -name key.json)",
        "sed -i s/a/b/ \"$(find . -name '*.json' -print -quit)\"",
        "f=$(find conf -type f); truncate -s 0 $f",
        "for f in $(find conf -name 'key*'); do rm $f; done",
        "find conf -type f | while read -r f; do sed -i s/a/b/ \"$f\"; done",
        "find . -type f | grep key | head -1 | xargs truncate -s 0",
        "python3 -c \"shutil.rmtree('conf')\"",
        "python3 -c \"(Path('conf') / 'key.json').unlink()\"",
        "python3 -c \"d = Path('docs'); d = here(); (d / 'conf/key.json').rename('x')\"",
        "git -C conf log --output=key.json -1",
        "python3 -c \"subprocess.run(['rm', 'conf/key.json'])\"",
        "ruby -i -ne 'puts 1' conf/key.json",
        "ls conf | xargs -I{} rm conf/{}",
        "ls | xargs rm -rf",
        "echo conf/* | xargs rm",
        "grep -l x conf/* | xargs rm",
        "rm conf/$x",
        "vim -c ':w! conf/key.json'",
        "docker run -v conf:/x alpine",
        "git ls-files | grep key | xargs rm",
        "git ls-files -z | xargs -0 rm",
        "git ls-files -- '*.json' | while read -r f; do rm \"$f\"; done",
        "git -C conf ls-files | xargs rm",
        "rm $(git ls-files)",
        "for f in $(git ls-files conf); do rm $f; done",
        "git grep -l x | xargs sed -i s/x/y/",
        "git ls-tree -r --name-only HEAD | xargs rm",
        "git show --name-only --format= HEAD | xargs rm",
        "git log --name-only --format= -1 | xargs rm",
        "echo y > conf/new; git diff --name-only HEAD~1 | xargs rm",
        "GIT_INDEX_FILE=i git ls-files | xargs rm",
        "compgen -G 'conf/*' | xargs rm",
        "compgen -f conf/ | xargs rm",
        "rm $(compgen -G 'c*/*.json')",
        "make -f <(printf 'a:\\n\\trm conf/key.json\\n')",
        "printf 'a:\\n\\t@rm conf/key.json\\n' > Makefile; make",
        "printf 'a: ; rm conf/key.json\\n' | make -f -",
        "bash <(echo rm conf/key.json)",
        "echo rm conf/key.json > s; bash < s",
        "tar xf own.tar",
        "tar -xf own.tar",
        "tar x < own.tar",
        "tar -f own.tar conf -x",
        "tar --file own.tar --extr",
        "jar xf missing.jar",
        "pax -r -f missing.tar",
        "unrar x missing.rar",
        "cat own.tar | tar x",
        "tar xzf missing.tgz",
        "curl -s https://example.com/a.tgz | tar xz",
        "mkdir new/conf; tar xf own.tar --strip-components=1 -C conf",
        "tar xf other.tar --transform s/a.txt/conf.key/",
        "cp other.tar own.tar; tar xf own.tar",
        "unzip missing.zip",
        "unzip -qo missing.zip -d ROOT",
        "cpio -idu < missing.cpio",
        "7z x missing.7z",
        "bsdtar -xf missing.tar",
        "git apply own.patch",
        "patch -p1 < own.patch",
        "cat bin/tool > x; chmod +x x; ./x hide",
        "cat < bin/tool > x",
        "tee x < bin/tool",
        "head -c 99 bin/tool > x",
        "base64 bin/tool | base64 -d > x",
        "tar c -C bin tool | tar x -C new",
        "scp host:key.json conf/",
        "for f in $(find conf -type f); do echo > $f; done",
        "ls conf/* | while read -r f; do : > \"$f\"; done",
        "set -- conf/*; rm \"$@\"",
        "rsync -a --remove-source-files conf/ new/",
        "tar cf - --remove-files conf",
        "zip -rm x.zip conf",
        "sed -n '1wconf/key.json' a.txt",
        "su -c 'rm conf/key.json'",
        "perl -e 'unlink glob q(conf/*)'",
        "git -c core.pager='rm conf/key.json' log",
        "./copy hide",
        "sudo nohup ROOT/copy hide &",
        "c=./copy; $c hide",
        "ld.so ./copy hide",
        "python3 -c \"subprocess.run(['ROOT/copy', 'hide'])\"",
        "stow -t ROOT other",
        "stow --target=. other",
        "stow -d . -t . other",
        "cd new && stow ../other",
        "lndir other ROOT",
        "rclone copy other .",
    ]
    .into_iter()
    .filter(|line| refuses(line).is_none());
    assert_eq!(passed.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn protected_files_are_read() {
    let refused = [
        "cat conf/key.json",
        "cat < conf/key.json | grep x",
        "jq .hooks conf/key.json",
        "npx prettier --check conf/key.json",
        "prettier conf/key.json",
        "eslint --max-warnings 0 conf/key.json",
        "black --diff conf/key.json",
        "grep -rn x conf",
        "ls -la conf bin",
        "sed -n 1,5p conf/key.json",
        "cp conf/key.json backup.json",
        "cp -r conf backup",
        "git add conf/key.json && git commit -m 'conf/key.json' -- conf/key.json",
        "git diff conf/key.json",
        "diff conf/key.json other/conf/key.json",
        "find . -name '*.pyc' -delete",
        "find conf -type f -exec grep -l x {} +",
        "find . -type f -exec chmod 644 {} +",
        "find . -type f | xargs chmod 644",
        "find conf -name '*.pyc' -delete",
        "find . -type f | head; rm -f \"$TMP\"; touch $(date +%s)",
        "find . -type f | grep '\\.rs$' | xargs sed -i s/a/b/",
        "find . -name conf -prune -o -name bin -prune -o -type f -exec sed -i s/a/b/ {} +",
        "find . -name '*.txt' | xargs sed -i s/a/b/",
        "cat $(find conf -name key.json)",
        "rsync -a --delete conf/ backup/",
        "rm -rf other",
        "mkdir -p conf/sub && touch conf/sub/x && chmod +x conf/sub/x",
        "echo conf/key.json",
        "python3 -m json.tool conf/key.json",
        "chmod -R u+w .",
        "mv a.txt conf/b.txt",
        "cp a.txt conf",
        "ls -l bin/tool",
        "python3 -c \"print(open('conf/key.json').read())\"",
        "python3 -c \"open('b', 'w').write('see conf/key.json')\"",
        "python3 -c \"subprocess.run(['cat', 'conf/key.json'])\"",
        "perl -ne 'print if /x/' conf/key.json",
        "ls conf | xargs -I{} cat conf/{}",
        "ls new | xargs -I{} rm new/{}",
        "grep -rl absent . | xargs sed -i s/a/b/",
        "find . -type d -empty -delete",
        "rm new/$x $x",
        "git -c core.autocrlf=false -c diff.algorithm=histogram diff conf",
        "set -- new/*; rm \"$@\"",
        "scp host:other.json conf/",
        "git ls-files new | xargs rm",
        "git ls-files conf | xargs cat",
        "git status --short | awk '{print $2}' | xargs rm",
        "git diff --name-only | xargs sed -i s/a/b/",
        "git grep -l absent | xargs rm",
        "git log --oneline | xargs -n1 rm",
        "compgen -G 'new/*' | xargs rm",
        "compgen -c | head",
        "make -f <(printf 'a:\\n\\tcat conf/key.json\\n')",
        "tar xf other.tar",
        "tar xzf missing.tgz -C new",
        "tar xzf missing.tgz -C $(mktemp -d)",
        "mkdir out && tar xf own.tar -C out",
        "tar tf own.tar",
        "tar cf all.tar .",
        "unzip missing.zip -d new",
        "unzip -l missing.zip",
        "unzip -qp missing.zip a.txt",
        "jar cf all.jar .",
        "find new | cpio -o > all.cpio",
        "7z x missing.7z -onew",
        "cpio -id -D new < missing.cpio",
        "git apply other.patch",
        "wc -c bin/tool; file bin/tool; sha256sum bin/tool",
        "./copy show",
        "python3 -c \"subprocess.run(['ROOT/copy', 'show'])\"",
        "stow -t new other",
        "lndir other new",
        "rclone copy . host:backup",
    ]
    .into_iter()
    .filter_map(|line| Some((line, refuses(line)?)));
    assert_eq!(refused.collect::<Vec<_>>(), []);
}

/// A reason names the path as the command does.
#[test]
fn a_refusal_names_the_path() {
    struct Named(PathBuf);
    impl CommandGuard for Named {
        fn places(&self) -> Vec<PathBuf> {
            TestGuard(self.0.clone()).places()
        }
        fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
            let is_below = self.places().iter().any(|place| path.starts_with(place));
            (is_below && change != Change::Copy).then(|| path.display().to_string())
        }
        fn run_refusal(&self, _: &[Option<&str>], _: bool) -> Option<String> {
            None
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let real = sightline_base::path::canonicalize(folder.path()).unwrap();
    for dir in ["conf", "bin"] {
        std::fs::create_dir_all(real.join(dir)).unwrap();
    }
    for file in ["conf/key.json", "bin/tool"] {
        std::fs::write(real.join(file), "x").unwrap();
    }
    for (line, path) in [
        ("install -m 644 a.txt conf/key.json", "conf/key.json"),
        ("ln -sf /bin/true bin/tool", "bin/tool"),
        ("cp a.txt conf/key.json", "conf/key.json"),
        ("chmod 644 conf/key.json", "conf/key.json"),
        ("mv -t bin tool.new tool", "bin/tool"),
    ] {
        let guard = Named(real.clone());
        let refusal = guard_command(line, &real, &guard);
        assert_eq!(refusal.map(PathBuf::from), Some(real.join(path)), "{line}");
    }
}

/// Commands that are known to change a file, and others that may.
#[test]
fn known_changes_are_told_from_possible_ones() {
    struct Certain(PathBuf);
    impl CommandGuard for Certain {
        fn places(&self) -> Vec<PathBuf> {
            vec![self.0.clone()]
        }
        fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
            (path == self.0 && change == Change::Any).then(|| "changed".to_owned())
        }
        fn run_refusal(&self, _: &[Option<&str>], _: bool) -> Option<String> {
            None
        }
        fn is_in(&self, place: &Path, folder: &Path) -> bool {
            place.starts_with(folder)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let real = sightline_base::path::canonicalize(folder.path()).unwrap();
    for file in ["src/deep/a.js", "new/a.js", "b.txt"] {
        let path = real.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let guard = Certain(real.join("src/deep/a.js"));
    for (is_certain, lines) in [
        (
            true,
            &[
                "echo x > FILE",
                "cd src && echo x >> deep/a.js",
                "cat > FILE <<'EOF'\nx\nEOF",
                "cat b.txt | tee -a FILE",
                "sed -i s/a/b/ FILE",
                "sed -E --in-place=.bak 's/a/b/' FILE",
                "perl -pi -e s/a/b/ FILE",
                "yq -i .a FILE",
                "truncate -s 0 FILE",
                "dd if=b.txt of=FILE",
                "sort -o FILE b.txt",
                "jq . b.txt | sponge FILE",
                "git checkout -- FILE",
                "git checkout HEAD~1 -- src",
                "git restore .",
                "git mv FILE other.js",
                "mv b.txt FILE",
                "mv src elsewhere",
                "cp new/a.js src/deep/",
                "rsync -a new/ src/deep/",
                "ln -sf b.txt FILE",
                "rm -rf src",
                "npx prettier --write FILE",
                "npm run lint -- --fix FILE",
                "black FILE",
                "gofmt -l -w FILE",
                "ruff format FILE",
                "sudo env A=1 rm FILE",
                "bash -c 'echo > FILE'",
                "find . -name a.js -exec sed -i s/a/b/ {} +",
                "find src -type f -delete",
                "echo FILE | xargs sed -i s/a/b/",
                "find src -name '*.js' | xargs sed -i s/a/b/",
                "for f in src/deep/*.js; do echo x > $f; done",
                "python3 -c \"open('FILE', 'w').write('')\"",
                "python3 - <<'EOF'\nfrom pathlib import Path\nPath('FILE').write_text('')\nEOF",
                "node -e \"require('fs').writeFileSync('FILE', '')\"",
                "patch -p1 <<'EOF'\n--- a/FILE\n+++ b/FILE\nEOF",
            ][..],
        ),
        (
            false,
            &[
                "node FILE",
                "python3 FILE",
                "python3 -c \"print(open('FILE').read())\"",
                "sed s/a/b/ FILE",
                "awk '{print}' FILE",
                "sort FILE",
                "chmod +x FILE",
                "eslint FILE",
                "black --check FILE",
                "gofmt -l FILE",
                "ruff check FILE",
                "npm test -- FILE",
                "cargo test FILE",
                "pytest FILE",
                "git add FILE",
                "git diff FILE > out.txt",
                "git checkout main",
                "cp FILE other.js",
                "cp b.txt src",
                "cat FILE | tee copy.txt",
                "find src -name b.js -exec sed -i s/a/b/ {} +",
            ],
        ),
    ] {
        for line in lines {
            let line = line.replace("FILE", "src/deep/a.js");
            let refusal = guard_command(&line, &real, &guard);
            assert_eq!(refusal.is_some(), is_certain, "{line}");
        }
    }
}

#[test]
fn only_allowed_commands_run() {
    for line in [
        "tool hide",
        "./bin/tool hide",
        "ROOT/bin/tool hide --yes",
        "sudo -u root tool hide",
        "sudo -n tool hide",
        "env A=1 tool hide",
        "command tool hide",
        "exec tool hide",
        "timeout 5 tool hide",
        "echo hide | xargs tool",
        "sh -c 'tool hide'",
        "echo 'tool hide' | sh",
        "true && (tool hide)",
        "find . -maxdepth 0 -exec tool hide ;",
        "x=tool; $x hide",
        "tool $unknown",
        "npx tool hide",
        "cargo run -p tool -- hide",
        "python3 -c \"import os; os.system('tool hide')\"",
        "node -e 'require(\"child_process\").execFileSync(\"tool\", [\"hide\"])'",
        "tool hide (",
        "git -c core.pager='tool hide' log",
        "printf 'a:\\n\\ttool hide\\n' | make -f -",
        "make -f - <<'E'\na: b\n\t@tool hide\nE",
    ] {
        assert!(refuses(line).is_some(), "{line}");
    }
    for line in [
        "tool",
        "tool show x",
        "sudo ./bin/tool show",
        "echo x | xargs tool show",
        "grep -r tool hide",
        "git commit -m 'tool hide'",
        "echo tool hide",
        "mkdir tool hide",
        "cargo test -p tool hide",
        "cargo run -p tool",
        "docker build -t tool .",
        "npx lint src/tool",
        "command -v tool",
        "timeout 5 grep tool hide",
    ] {
        assert_eq!(refuses(line), None, "{line}");
    }
}

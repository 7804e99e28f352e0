//! Rules while their files change.

use super::*;
use sightline_protocol::settings::Secrets;

/// Loads the rules at times that the test sets. Only the test moves the clocks, because a busy machine takes
/// longer for a step than the rules are held.
struct RuleLoader {
    access: Access,
    now: ClockReading,
}

impl RuleLoader {
    fn new(root: &Path) -> Self {
        Self {
            access: access(&[root]),
            now: ClockReading::system(),
        }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now.monotonic += time;
        self.now.wall += time;
        self
    }

    /// Returns which of the files `a`, `b`, `c` are denied, and which roots changed.
    fn state(&self) -> (String, Vec<usize>) {
        let (view, changed) = self.access.view_at(self.now);
        let denied = ["a", "b", "c"]
            .into_iter()
            .filter(|path| kind(&view, path) == AccessKind::Denied)
            .collect();
        (denied, changed)
    }

    fn denied(&self) -> String {
        self.state().0
    }
}

#[test]
fn a_change_is_seen_by_the_next_view_and_reported_once() {
    let (_parent, root) = workspace(&[]);
    let rules = root.join(".clineignore");
    let mut loader = RuleLoader::new(&root);
    let mut before = String::new();
    // New rules apply at once; removed rules apply for a grace period.
    let mut expect = |loader: &mut RuleLoader, denied: &str, at_once: &str| {
        for now in [at_once, denied] {
            let (found, changed) = loader.state();
            assert_eq!(found, now);
            assert!(changed == [0] || now == before, "{before} {now}");
            assert_eq!(loader.state(), (now.to_owned(), vec![]));
            loader.wait(REMOVAL_DELAY);
            before = now.to_owned();
        }
    };
    expect(&mut loader, "", "");
    fs::write(&rules, "a\n").unwrap();
    expect(&mut loader, "a", "a");
    fs::write(&rules, "b\n").unwrap();
    expect(&mut loader, "b", "ab");
    // Same length, same clock tick.
    for _ in 0..50 {
        fs::write(&rules, "c\n").unwrap();
        expect(&mut loader, "c", "bc");
        fs::write(&rules, "b\n").unwrap();
        expect(&mut loader, "b", "bc");
    }
    // Same length, same times: only the content differs.
    let modified = fs::metadata(&rules).unwrap().modified().unwrap();
    fs::write(&rules, "a\n").unwrap();
    fs::File::options()
        .write(true)
        .open(&rules)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    expect(&mut loader, "a", "ab");
    // Touched without a change.
    fs::write(&rules, "a\n").unwrap();
    assert_eq!(loader.state(), ("a".to_owned(), vec![]));
    // Replaced, as editors do.
    fs::write(root.join("new"), "b\n").unwrap();
    fs::rename(root.join("new"), &rules).unwrap();
    expect(&mut loader, "b", "ab");
    fs::remove_file(&rules).unwrap();
    expect(&mut loader, "", "b");
    fs::write(&rules, "!include more\n").unwrap();
    expect(&mut loader, "", "");
    fs::write(root.join("more"), "c\n").unwrap();
    expect(&mut loader, "c", "c");
    fs::write(root.join("more"), "a\n").unwrap();
    expect(&mut loader, "a", "ac");
    fs::remove_file(root.join("more")).unwrap();
    expect(&mut loader, "", "a");
    fs::write(&rules, "!include ../x\n").unwrap();
    expect(&mut loader, "abc", "abc");
    fs::write(&rules, "a\n").unwrap();
    expect(&mut loader, "a", "abc");
    assert!(loader.access.watched_files().contains(&rules));
}

/// A way to change a file, with its name.
type Way = (&'static str, fn(&Path));

/// A rule file is briefly empty or missing while an editor saves it.
#[test]
fn rules_apply_while_their_file_is_saved() {
    let steps: [Way; 4] = [
        ("truncate", |path| fs::write(path, "").unwrap()),
        ("half", |path| fs::write(path, "#").unwrap()),
        ("delete", |path| fs::remove_file(path).unwrap()),
        ("move", |path| {
            fs::rename(path, path.with_extension("backup")).unwrap();
        }),
    ];
    for file in [".clineignore", "more"] {
        for (name, step) in steps {
            let (_parent, root) =
                workspace(&[(".clineignore", "!include more\na\n"), ("more", "b\n")]);
            let path = root.join(file);
            let text = fs::read(&path).unwrap();
            let mut loader = RuleLoader::new(&root);
            assert_eq!(loader.denied(), "ab", "{file} {name}");
            step(&path);
            assert_eq!(loader.denied(), "ab", "{file} {name}");
            loader.wait(REMOVAL_DELAY - Duration::from_millis(50));
            assert_eq!(loader.denied(), "ab", "{file} {name}");
            // Saved: no change is reported.
            fs::write(&path, &text).unwrap();
            assert_eq!(loader.denied(), "ab", "{file} {name}");
            assert_eq!(loader.wait(REMOVAL_DELAY).denied(), "ab", "{file} {name}");
            assert!(!loader.access.is_holding());
            // Missing for longer than a save takes: the change is intentional.
            step(&path);
            assert_eq!(loader.denied(), "ab", "{file} {name}");
            let left = if file == "more" { "a" } else { "" };
            let less = (left.to_owned(), vec![0]);
            assert_eq!(loader.wait(REMOVAL_DELAY).state(), less, "{file} {name}");
        }
    }
}

/// A change during the grace period restarts it, and all rules of the period stay in effect.
#[test]
fn every_version_applies_until_the_last_is_settled() {
    let (_parent, root) = workspace(&[(".clineignore", "a\n")]);
    let path = root.join(".clineignore");
    let mut loader = RuleLoader::new(&root);
    // Additional lines remove no rule.
    fs::write(&path, "a\nc\n").unwrap();
    assert_eq!(loader.state(), ("ac".to_owned(), vec![0]));
    assert_eq!(
        loader.wait(REMOVAL_DELAY).state(),
        ("ac".to_owned(), vec![])
    );
    fs::write(&path, "a\nc\n!c\n").unwrap();
    assert_eq!(loader.state(), ("ac".to_owned(), vec![0]));
    assert_eq!(
        loader.wait(REMOVAL_DELAY).state(),
        ("a".to_owned(), vec![0])
    );
    let most = REMOVAL_DELAY - Duration::from_millis(50);
    fs::write(&path, "b\n").unwrap();
    assert_eq!(loader.denied(), "ab");
    fs::write(&path, "c\n").unwrap();
    assert_eq!(loader.wait(most).denied(), "abc");
    fs::write(&path, "").unwrap();
    assert_eq!(loader.wait(most).denied(), "abc");
    // Empty again, but a different empty file.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(loader.wait(most).denied(), "abc");
    assert_eq!(loader.wait(REMOVAL_DELAY).denied(), "");
    // More versions than are retained.
    for n in 0..40 {
        fs::write(&path, format!("x{n}\n")).unwrap();
        loader.denied();
    }
    assert_eq!(loader.denied(), "abc");
    assert_eq!(loader.wait(REMOVAL_DELAY).denied(), "");
}

/// A file that is missing at two checks may have been there in between.
#[test]
fn rules_apply_while_their_file_is_deleted_again_and_again() {
    let (_parent, root) = workspace(&[(".clineignore", "a\n")]);
    let path = root.join(".clineignore");
    let mut loader = RuleLoader::new(&root);
    for _ in 0..5 {
        fs::write(&path, "a\n").unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(loader.denied(), "a");
        loader.wait(REMOVAL_DELAY);
    }
    assert_eq!(loader.denied(), "");
}

/// The grace period is measured from the change, even if the rules were not loaded since.
#[test]
fn an_old_change_applies_at_the_first_load() {
    let enough = Duration::from_secs(2);
    for change in [
        (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        |path| fs::write(path, "").unwrap(),
    ] {
        let (_parent, root) = workspace(&[(".clineignore", "a\n")]);
        let mut loader = RuleLoader::new(&root);
        assert_eq!(loader.denied(), "a");
        change(&root.join(".clineignore"));
        assert_eq!(loader.wait(enough).denied(), "");
    }
    // The file is old, but was moved here after the last load.
    let (_parent, root) = workspace(&[
        (".clineignore", "!include sub/more\n"),
        ("other/more", ""),
        ("sub/more", "a\n"),
    ]);
    let mut loader = RuleLoader::new(&root);
    assert_eq!(loader.wait(enough).denied(), "a");
    fs::rename(root.join("sub"), root.join("gone")).unwrap();
    fs::rename(root.join("other"), root.join("sub")).unwrap();
    assert_eq!(loader.wait(enough).denied(), "a");
    assert_eq!(loader.wait(REMOVAL_DELAY).denied(), "");
}

/// Other directories are opened while a rule file is saved.
#[test]
fn rules_apply_when_the_roots_change() {
    let (parent, root) = workspace(&[(".clineignore", "a\n")]);
    let access = access(&[&root]);
    fs::write(root.join(".clineignore"), "").unwrap();
    let sub = root.join("sub");
    for folders in [[root.as_path(), parent.path()], [&sub, parent.path()]] {
        let roots = folders.map(|path| Root::new(abs(path), None));
        let renewed = access.updated(
            Arc::new(Roots::new(roots.to_vec())),
            Vec::new(),
            Secrets::Allow,
        );
        assert_eq!(kind(&renewed.view().0, "a"), AccessKind::Denied);
    }
}

/// A thread saves a file in every way: rules that are in the file before and after the save
/// always apply.
#[test]
fn saving_rules_never_allows_a_denied_file() {
    const TEXT: &str = "secret\n# and more\n";
    let ways: [Way; 4] = [
        ("truncate and write", |path| fs::write(path, TEXT).unwrap()),
        ("write in steps", |path| {
            let mut file = fs::File::create(path).unwrap();
            for part in TEXT.as_bytes().chunks(5) {
                std::io::Write::write_all(&mut file, part).unwrap();
            }
        }),
        ("backup by rename", |path| {
            let backup = path.with_extension("backup");
            rename(path, &backup);
            fs::write(path, TEXT).unwrap();
            remove_file(&backup);
        }),
        ("delete and create", |path| {
            remove_file(path);
            fs::write(path, TEXT).unwrap();
        }),
    ];
    for file in [".clineignore", "more"] {
        for (name, save) in ways {
            let (_parent, root) = workspace(&[
                (".clineignore", "!include more\n"),
                ("more", ""),
                ("secret", ""),
            ]);
            let path = root.join(file);
            fs::write(&path, TEXT).unwrap();
            let access = access(&[&root]);
            let is_over = AtomicBool::new(false);
            let (mut loads, mut leaks) = (0, 0);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        save(&path);
                    }
                });
                let until = Instant::now() + Duration::from_millis(500);
                while loads < 20_000 && Instant::now() < until {
                    loads += 1;
                    leaks += u32::from(kind(&access.view().0, "secret") != AccessKind::Denied);
                }
                is_over.store(true, Ordering::Relaxed);
            });
            assert_eq!(leaks, 0, "of {loads}: {name} {file}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_rule_file_behind_a_link_is_followed_when_it_changes() {
    let (parent, root) = workspace(&[]);
    let (one, two) = (parent.path().join("one"), parent.path().join("two"));
    fs::write(&one, "a\n").unwrap();
    fs::write(&two, "b\n").unwrap();
    let rules = root.join(".clineignore");
    link(&one, &rules);
    let access = access(&[&root]);
    assert_eq!(kind(&access.view().0, "a"), AccessKind::Denied);
    fs::remove_file(&rules).unwrap();
    link(&two, &rules);
    assert_eq!(kind(&access.view().0, "b"), AccessKind::Denied);
    fs::write(&two, "c\n").unwrap();
    assert_eq!(kind(&access.view().0, "c"), AccessKind::Denied);
    fs::remove_file(&two).unwrap();
    assert_eq!(kind(&access.view().0, "anything"), AccessKind::Denied);
}

/// While rules are rewritten repeatedly, no view lacks them.
#[test]
fn rules_are_never_absent() {
    let (_parent, root) = workspace(&[(".clineignore", "secret\nother-0\n")]);
    let access = access(&[&root]);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                for _ in 0..300 {
                    assert_eq!(kind(&access.view().0, "secret"), AccessKind::Denied);
                }
            });
        }
        for turn in 0..300 {
            let new = root.join("new");
            fs::write(&new, format!("secret\nother-{turn}\n")).unwrap();
            rename(&new, &root.join(".clineignore"));
        }
    });
}

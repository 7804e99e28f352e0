//! Repository facts in the block, none of which comes from a denied file.

use super::*;

const SHOWN: &str = "1111111111111111111111111111111111111111";
const SECRET: &str = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";

/// Facts about the repository of [`Case`] in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    remote: bool,
    commit: bool,
}

const ALL: Facts = Facts {
    remote: true,
    commit: true,
};
const REMOTE: Facts = Facts {
    remote: true,
    commit: false,
};
const COMMIT: Facts = Facts {
    remote: false,
    commit: true,
};
const NOTHING: Facts = Facts {
    remote: false,
    commit: false,
};

/// A repository in which a path leads to `secrets/`, or is denied itself.
struct Case {
    name: &'static str,
    rules: &'static str,
    /// Overwrite the files of the repository.
    files: &'static [(&'static str, &'static str)],
    /// Replace existing paths.
    links: &'static [(&'static str, &'static str)],
    expected: Facts,
}

const CASE: Case = Case {
    name: "",
    rules: "secrets/\n",
    files: &[],
    links: &[],
    expected: ALL,
};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://example.org/shown.git\n";
const STOLEN: &str = "[remote \"stolen\"]\n\turl = https://example.org/SECRET.git\n";

/// Returns the facts in the block of `case`. Asserts that it contains no secret.
fn shown_facts(case: &Case) -> Facts {
    let mut fixture = Fixture::new(
        &["app"],
        &[
            ("app/.clineignore", case.rules),
            ("app/.git/HEAD", "ref: refs/heads/main\n"),
            ("app/.git/config", CONFIG),
            ("app/.git/refs/heads/main", &format!("{SHOWN}\n")),
            ("app/.git/objects/info/keep", ""),
            ("app/secrets/config", STOLEN),
            ("app/secrets/id", &format!("{SECRET}\n")),
            ("app/secrets/head", "ref: refs/heads/stolen\n"),
            ("app/secrets/packed", &format!("{SECRET} refs/heads/main\n")),
            ("app/secrets/heads/main", &format!("{SECRET}\n")),
            ("app/secrets/refs/heads/main", &format!("{SECRET}\n")),
            ("app/secrets/gitdir", "gitdir: secrets/git\n"),
            ("app/secrets/common", "../secrets/git\n"),
            ("app/secrets/git/HEAD", "ref: refs/heads/main\n"),
            ("app/secrets/git/config", STOLEN),
            ("app/secrets/git/refs/heads/main", &format!("{SECRET}\n")),
            ("app/secrets/git/objects/info/keep", ""),
        ],
    );
    for (path, content) in case.files {
        let path = fixture.at(path);
        if path.as_path().is_dir() {
            fs::remove_dir_all(path.as_path()).unwrap();
        }
        fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
        fs::write(path.as_path(), content).unwrap();
    }
    for (path, target) in case.links {
        let path = fixture.at(path);
        if path.as_path().is_dir() {
            fs::remove_dir_all(path.as_path()).unwrap();
        } else {
            let _ = fs::remove_file(path.as_path());
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(target, path.as_path()).unwrap();
        #[cfg(not(unix))]
        let _ = target;
    }
    fixture.params.include_files = true;
    let body = fixture.body(SectionId::WorkspaceConfiguration);
    assert!(
        !body.contains("SECRET") && !body.contains(SECRET) && !body.contains("stolen"),
        "{}: {body}",
        case.name
    );
    Facts {
        remote: body.contains("shown.git"),
        commit: body.contains(SHOWN),
    }
}

fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        // One leak must not hide the others.
        match std::panic::catch_unwind(|| shown_facts(case)) {
            Ok(facts) if facts == case.expected => {}
            Ok(facts) => wrong.push(format!("{}: {facts:?}", case.name)),
            Err(_) => wrong.push(format!("{}: leaks", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn allowed_facts_are_shown() {
    check(&[
        Case {
            name: "plain",
            ..CASE
        },
        Case {
            name: "no rules",
            rules: "",
            ..CASE
        },
        Case {
            name: "a packed ref",
            files: &[
                ("app/.git/HEAD", "ref: refs/heads/packed\n"),
                (
                    "app/.git/packed-refs",
                    "# pack-refs with: peeled fully-peeled sorted\n\
                     2222222222222222222222222222222222222222 refs/heads/packe\n\
                     1111111111111111111111111111111111111111 refs/heads/packed\n\
                     ^3333333333333333333333333333333333333333\n",
                ),
            ],
            ..CASE
        },
        Case {
            name: "a detached head",
            files: &[(
                "app/.git/HEAD",
                "1111111111111111111111111111111111111111\n",
            )],
            ..CASE
        },
        Case {
            name: "a ref that names another one",
            files: &[
                ("app/.git/HEAD", "ref: refs/heads/alias\n"),
                ("app/.git/refs/heads/alias", "ref: refs/heads/main\n"),
            ],
            ..CASE
        },
        Case {
            name: "a worktree: gitdir and commondir",
            files: &[
                ("app/.git", "gitdir: ../main/.git/worktrees/app\n"),
                ("main/.git/worktrees/app/HEAD", "ref: refs/heads/topic\n"),
                ("main/.git/worktrees/app/commondir", "../..\n"),
                ("main/.git/config", CONFIG),
                (
                    "main/.git/refs/heads/topic",
                    "1111111111111111111111111111111111111111\n",
                ),
                ("main/.git/objects/info/keep", ""),
            ],
            ..CASE
        },
    ]);
}

#[cfg(unix)]
#[test]
fn no_fact_comes_from_a_denied_file() {
    check(&[
        Case {
            name: "include",
            files: &[("app/.git/config", "[include]\n\tpath = ../secrets/config\n")],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include with a byte order mark",
            files: &[(
                "app/.git/config",
                "\u{feff}[include]\n\tpath = ../secrets/config\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include behind another header",
            files: &[(
                "app/.git/config",
                "[core][include]\n\tpath = ../secrets/config\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include on the line of another header, with its value",
            files: &[(
                "app/.git/config",
                "[core] [include] path = ../secrets/config\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include in capitals",
            files: &[("app/.git/config", "[INCLUDE]\nPATH=../secrets/config\n")],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include with a path in quotes over two lines",
            files: &[(
                "app/.git/config",
                "[include]\n\tpath = \"../secr\\\nets/config\"\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "includeIf",
            files: &[(
                "app/.git/config",
                "[includeIf \"gitdir:**\"]\n\tpath = ../secrets/config\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "includeIf with a byte order mark behind a header",
            files: &[(
                "app/.git/config",
                "\u{feff}[core]bare=false\n[core] [includeIf \"onbranch:*\"] path=../secrets/config\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "include behind carriage returns",
            files: &[(
                "app/.git/config",
                "[core]\r\nbare=false\r\n[include]\r\npath=../secrets/config\r\n",
            )],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "the configuration of the worktree",
            files: &[
                (
                    "app/.git/config",
                    "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
                ),
                (
                    "app/.git/config.worktree",
                    "[include]\n\tpath = ../secrets/config\n",
                ),
            ],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "the configuration of the worktree is a link",
            files: &[(
                "app/.git/config",
                "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
            )],
            links: &[("app/.git/config.worktree", "../secrets/config")],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "commondir",
            files: &[("app/.git/commondir", "../secrets/git\n")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: "commondir is a link",
            links: &[("app/.git/commondir", "../secrets/common")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: "gitdir",
            files: &[("app/.git", "gitdir: secrets/git\n")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: "gitdir, absolute by detours",
            files: &[("app/.git", "gitdir: ./src/../secrets/../secrets/git\n")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: "the file with gitdir is a link",
            links: &[("app/.git", "secrets/gitdir")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: ".git is a link",
            links: &[("app/.git", "secrets/git")],
            expected: NOTHING,
            ..CASE
        },
        Case {
            name: "config is a link",
            links: &[("app/.git/config", "../secrets/config")],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "config is a link to a link",
            links: &[
                ("app/.git/other", "../secrets/config"),
                ("app/.git/config", "other"),
            ],
            expected: COMMIT,
            ..CASE
        },
        Case {
            name: "HEAD is a link to an id",
            links: &[("app/.git/HEAD", "../secrets/id")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "HEAD is a link to a ref",
            links: &[("app/.git/HEAD", "../secrets/refs/heads/main")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "the ref is a link",
            links: &[("app/.git/refs/heads/main", "../../../secrets/id")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "a second ref is a link",
            files: &[("app/.git/refs/heads/main", "ref: refs/heads/other\n")],
            links: &[("app/.git/refs/heads/other", "../../../secrets/id")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "refs is a link",
            links: &[("app/.git/refs", "../secrets/refs")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "refs/heads is a link",
            links: &[("app/.git/refs/heads", "../../secrets/heads")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "packed-refs is a link",
            files: &[("app/.git/HEAD", "ref: refs/heads/packed\n")],
            links: &[("app/.git/packed-refs", "../secrets/packed")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "HEAD names a path",
            files: &[("app/.git/HEAD", "ref: ../secrets/id\n")],
            expected: REMOTE,
            ..CASE
        },
        Case {
            name: "HEAD names a path below refs",
            files: &[("app/.git/HEAD", "ref: refs/../../secrets/id\n")],
            expected: REMOTE,
            ..CASE
        },
    ]);
}

#[test]
fn a_fact_from_a_denied_git_file_is_omitted() {
    let packed: &[(&str, &str)] = &[
        ("app/.git/HEAD", "ref: refs/heads/packed\n"),
        (
            "app/.git/packed-refs",
            "1111111111111111111111111111111111111111 refs/heads/packed\n",
        ),
    ];
    let denying = |name, expected| Case {
        name,
        rules: name,
        expected,
        ..CASE
    };
    check(&[
        denying(".git", NOTHING),
        denying(".git/", NOTHING),
        denying(".git/**", NOTHING),
        denying("*", NOTHING),
        denying(".git/config", COMMIT),
        denying("config", COMMIT),
        denying(".git/HEAD", REMOTE),
        denying(".git/refs", REMOTE),
        denying(".git/refs/", REMOTE),
        denying(".git/refs/heads/main", REMOTE),
        Case {
            files: packed,
            ..denying(".git/packed-refs", REMOTE)
        },
        Case {
            files: packed,
            name: "nothing denies packed-refs",
            ..CASE
        },
        // A hidden loose ref could name another commit than the packed ref.
        Case {
            files: &[(
                "app/.git/packed-refs",
                "1111111111111111111111111111111111111111 refs/heads/main\n",
            )],
            ..denying(".git/refs/heads/ma*", REMOTE)
        },
    ]);
}

#[cfg(unix)]
#[test]
fn a_pipe_hides_only_its_own_fact() {
    for (pipe, expected) in [
        ("HEAD", REMOTE),
        ("refs/heads/main", REMOTE),
        ("config", COMMIT),
        ("commondir", NOTHING),
    ] {
        let mut fixture = Fixture::new(
            &["app"],
            &[
                ("app/.git/HEAD", "ref: refs/heads/main\n"),
                ("app/.git/config", CONFIG),
                ("app/.git/refs/heads/main", &format!("{SHOWN}\n")),
                ("app/.git/objects/info/keep", ""),
            ],
        );
        let path = fixture.at("app/.git").as_path().join(pipe);
        let _ = fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        fixture.params.include_files = true;
        let body = fixture.body(SectionId::WorkspaceConfiguration);
        let facts = Facts {
            remote: body.contains("shown.git"),
            commit: body.contains(SHOWN),
        };
        assert_eq!(facts, expected, "{pipe}: {body}");
    }
}

//! Tests with several writers on one conversation: threads, processes, killed processes, and a
//! full disk. The test program starts itself as the other process.

use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::support::{Scratch, append, at, open, raw, says};
use sightline_base::cancel::Cancel;
use sightline_tasks::{Conversation, EntryMeta, TaskStore};
use sightline_testing::process::test_name;

const DATA: &str = "SIGHTLINE_TEST_DATA";
const NAME: &str = "SIGHTLINE_TEST_NAME";
const COUNT: &str = "SIGHTLINE_TEST_COUNT";
const KILLS: u64 = 200;

/// A message with the name of its writer and a sequence number.
fn message(name: &str, nth: usize) -> String {
    // Some span many pages, so that a writer can be killed in the middle of one.
    let size = [10, 5_000, 60_000, 300_000][nth % 4];
    says("user", &format!("{name} {nth} {}", "x".repeat(size)))
}

/// Returns the writer and sequence number of each message.
fn written(conversation: &Conversation) -> HashMap<String, Vec<usize>> {
    let mut written: HashMap<String, Vec<usize>> = HashMap::new();
    for stored in &conversation.messages {
        let message: serde_json::Value = serde_json::from_str(stored.message.get()).unwrap();
        let mut words = message["content"].as_str().unwrap().split(' ');
        let name = words.next().unwrap().to_owned();
        let nth = words.next().unwrap().parse().unwrap();
        written.entry(name).or_default().push(nth);
    }
    written
}

/// Not a test: the entry point of the other process.
#[test]
fn child() {
    let (Some(data), Ok(name), Ok(count)) = (env::var_os(DATA), env::var(NAME), env::var(COUNT))
    else {
        return;
    };
    let store = open(Path::new(&data));
    let mut told = std::io::stdout();
    for nth in 0..count.parse().unwrap() {
        let message = raw(&message(&name, nth));
        let appended = store.append(
            &at("t"),
            &[&message],
            &EntryMeta::default(),
            &Cancel::default(),
        );
        let said = match appended.and_then(|appended| appended.written.sync()) {
            Ok(()) => format!("stored {nth}"),
            Err(error) => format!("refused {nth} {:?}", error.kind()),
        };
        if writeln!(told, "\n{said}").is_err() {
            return;
        }
    }
}

fn child_of(mut command: Command, data: &Path, name: &str, count: usize) -> Child {
    command
        .args([
            &test_name(module_path!(), "child"),
            "--exact",
            "--nocapture",
        ])
        .env(DATA, data)
        .env(NAME, name)
        .env(COUNT, count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn start(data: &Path, name: &str, count: usize) -> Child {
    child_of(Command::new(env::current_exe().unwrap()), data, name, count)
}

fn load(store: &TaskStore) -> std::sync::Arc<Conversation> {
    store.load(&at("t"), &Cancel::default()).unwrap()
}

/// Pseudo-random small numbers.
fn scattered(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40
}

#[test]
fn a_killed_writer_loses_nothing_acknowledged() {
    let scratch = Scratch::new();
    let mut stored: HashMap<String, usize> = HashMap::new();
    let mut torn = 0;
    for round in 0..KILLS {
        let name = format!("r{round}");
        let mut child = start(&scratch.data(), &name, usize::MAX);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = 0;
        let heed = |line: &str, told: &mut usize| {
            if let Some(nth) = line.strip_prefix("stored ") {
                assert_eq!(nth.parse(), Ok(*told));
                *told += 1;
            }
            assert!(!line.starts_with("refused"), "{line}");
        };
        let wanted = (scattered(round) % 3) as usize;
        while told < wanted {
            heed(&lines.next().unwrap().unwrap(), &mut told);
        }
        let moment = Instant::now() + Duration::from_micros(scattered(round + 1000) % 3000);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Count what it acknowledged before it was killed.
        for line in lines.map_while(Result::ok) {
            heed(&line, &mut told);
        }
        stored.insert(name, told);
        if !scratch.log_path("t").exists() {
            continue;
        }
        let now = load(&scratch.store);
        torn = torn.max(now.recovered.dropped);
        let there = written(&now);
        for (name, told) in &stored {
            let there = there.get(name).map(Vec::as_slice).unwrap_or_default();
            let expected: Vec<usize> = (0..there.len()).collect();
            assert_eq!(there, expected, "{name}: each once and in order");
            assert!(there.len() == *told || there.len() == told + 1, "{name}");
        }
    }
    let fresh = load(&scratch.again());
    assert_eq!(written(&fresh), written(&load(&scratch.store)));
    assert!(stored.values().sum::<usize>() as u64 > KILLS / 2);
    println!("lines torn: {torn}");
}

#[test]
fn concurrent_writers_lose_nothing_and_keep_their_order() {
    let scratch = Scratch::new();
    let data = scratch.data();
    let mut children: Vec<Child> = ["p1", "p2"].map(|name| start(&data, name, 40)).into();
    std::thread::scope(|scope| {
        for name in ["t1", "t2", "t3", "t4"] {
            let store = &scratch.store;
            scope.spawn(move || {
                for nth in 0..40 {
                    append(store, "t", &[&message(name, nth)], 1);
                    // Concurrent readers do not interfere.
                    let there = written(&load(store));
                    assert_eq!(there[name].len(), nth + 1);
                }
            });
        }
    });
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    for store in [scratch.store.clone(), scratch.again()] {
        let now = load(&store);
        assert_eq!((now.messages.len(), now.recovered.dropped), (240, 0));
        let there = written(&now);
        for name in ["p1", "p2", "t1", "t2", "t3", "t4"] {
            assert_eq!(there[name], (0..40).collect::<Vec<_>>(), "{name}");
        }
    }
}

#[test]
fn several_appends_share_one_sync() {
    let scratch = Scratch::new();
    let counted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for name in ["t1", "t2"] {
            let (store, counted) = (&scratch.store, &counted);
            scope.spawn(move || {
                let mut last = None;
                for nth in 0..20 {
                    let message = raw(&message(name, nth * 4));
                    let meta = EntryMeta::default();
                    let cancel = Cancel::default();
                    let appended = store.append(&at("t"), &[&message], &meta, &cancel);
                    let appended = appended.unwrap();
                    counted.fetch_max(appended.count as usize, Ordering::Relaxed);
                    last = Some(appended.written);
                }
                last.unwrap().sync().unwrap();
            });
        }
    });
    assert_eq!(counted.into_inner(), 40);
    assert_eq!(load(&scratch.again()).messages.len(), 40);
}

#[cfg(unix)]
#[test]
fn a_failed_write_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let data = scratch.data();
    append(&scratch.store, "t", &[&message("before", 0)], 1);
    // Limits the file size of that process to about 400 kB. Exceeding it is an error, not a
    // signal.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""])
        .arg(env::current_exe().unwrap());
    let mut child = child_of(shell, &data, "limited", 9);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told: Vec<String> = lines
        .map(Result::unwrap)
        .filter(|line| line.starts_with("stored") || line.starts_with("refused"))
        .collect();
    assert!(child.wait().unwrap().success());
    let stored: Vec<usize> = told
        .iter()
        .filter_map(|line| line.strip_prefix("stored ")?.parse().ok())
        .collect();
    assert!(told.contains(&"refused 3 Storage".to_owned()), "{told:?}");
    assert!(stored.starts_with(&[0, 1, 2, 4]), "{told:?}");
    for store in [scratch.store.clone(), scratch.again()] {
        let now = load(&store);
        assert_eq!(written(&now)["limited"], stored);
        assert_eq!(now.recovered.dropped, 0);
    }
}

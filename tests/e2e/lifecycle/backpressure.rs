//! Clients that do not read the server's output.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use sightline_base::limits::MAX_UNSENT_BYTES;
use sightline_local::frame::{FrameReader, write_frame};

use crate::{
    harness::{Workspace, program, wait},
    ipc::run,
};

const MIB: usize = 1024 * 1024;
/// Far more responses of 1 MiB than the output queue holds.
const REQUESTS: usize = 200;
/// Also more than the output queue holds.
const FIRST: usize = 100;
/// Maximum memory of the server: the output queue, and the responses of running jobs.
const MOST_MEMORY: usize = MAX_UNSENT_BYTES + 128 * MIB;

struct Session {
    child: Child,
    input: ChildStdin,
    output: FrameReader<ChildStdout>,
}

/// A server whose workspace has a file of 1 MiB.
fn session(workspace: &Workspace) -> Session {
    let line = "0123456789abcdef".repeat(4);
    workspace.write("large.txt", &format!("{}\n", &line[1..]).repeat(MIB / 64));
    let mut child = program()
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = FrameReader::new(child.stdout.take().unwrap());
    send(
        &mut input,
        &request(0, "initialize", workspace.initialize()),
    )
    .unwrap();
    while answered(&next(&mut output).unwrap()) != Some(0) {}
    send(&mut input, &notification("initialized", json!({}))).unwrap();
    Session {
        child,
        input,
        output,
    }
}

fn request(id: usize, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn send(input: &mut impl Write, message: &Value) -> std::io::Result<()> {
    write_frame(input, message.to_string().as_bytes())
}

/// Returns the request id of a response. Large ones are not parsed.
fn answered(message: &[u8]) -> Option<usize> {
    if message.len() < MIB {
        let message: Value = serde_json::from_slice(message).unwrap();
        let id = message["id"]
            .as_u64()
            .filter(|_| message["method"].is_null());
        return id.and_then(|id| usize::try_from(id).ok());
    }
    let head = String::from_utf8_lossy(&message[..80]);
    let id = head.split_once("\"id\":").unwrap().1;
    id.split_once(',').unwrap().0.parse().ok()
}

/// Returns the next message within the deadline, or `None` at the end.
fn next(output: &mut FrameReader<ChildStdout>) -> Option<Vec<u8>> {
    if !output.has_more() {
        let long = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::new(output.stream(), PollFlags::IN)];
        assert_eq!(
            poll(&mut polled, Some(&long)),
            Ok(1),
            "no answer in a minute"
        );
    }
    output.next_frame().unwrap().map(Result::unwrap)
}

/// Returns a field of `/proc/<pid>/status`, in bytes.
fn memory(pid: u32, what: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// Returns the peak memory of a process.
fn peak(pid: u32) -> usize {
    memory(pid, "VmHWM:")
}

/// Waits until the server's memory stops growing.
fn wait_until_full(pid: u32, before: usize) {
    let (mut last, mut quiet) = (0, 0);
    for _ in 0..600 {
        thread::sleep(Duration::from_millis(50));
        let now = memory(pid, "VmRSS:");
        let is_full = now > before + MAX_UNSENT_BYTES - 4 * MIB && now.abs_diff(last) < MIB / 2;
        quiet = if is_full { quiet + 1 } else { 0 };
        if quiet > 20 {
            return;
        }
        last = now;
    }
    panic!("{} MiB", last / MIB);
}

#[test]
fn input_pauses_and_each_response_comes_once_after_reading() {
    let workspace = Workspace::new(&[]);
    let Session {
        mut child,
        mut input,
        mut output,
    } = session(&workspace);
    let pid = child.id();
    let before = peak(pid);
    let (sent, sent_ids) = channel();
    let sender = thread::spawn(move || {
        // Together more than the pipe and the server's input buffer hold.
        let padding = "x".repeat(8192);
        for id in 1..=REQUESTS {
            let params = json!({ "path": "large.txt", "padding": padding });
            send(&mut input, &request(id, "sightline/readFile", params)).unwrap();
            if id % 10 == 0 {
                let cancelled = json!({ "id": id - id % 3 });
                send(&mut input, &notification("$/cancelRequest", cancelled)).unwrap();
            }
            if id == FIRST {
                wait_until_full(pid, before);
            }
            let _ = sent.send(id);
        }
        input
    });
    while sent_ids.recv().unwrap() < FIRST {}
    let waits = loop {
        match sent_ids.recv_timeout(Duration::from_secs(3)) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break true,
            Err(RecvTimeoutError::Disconnected) => break false,
        }
    };
    assert!(waits, "all was read, though no answer was");
    assert!(peak(pid) < MOST_MEMORY, "{} MiB", peak(pid) / MIB);

    let mut answers = BTreeMap::new();
    while answers.len() < REQUESTS {
        let message = next(&mut output).unwrap();
        if let Some(id) = answered(&message) {
            *answers.entry(id).or_insert(0) += 1;
            let is_whole = message.len() > MIB;
            let is_cancelled = id > 0 && message.windows(6).any(|part| part == b"-32800");
            assert!(is_whole || is_cancelled, "{id}: {} bytes", message.len());
        }
    }
    assert!(peak(pid) < MOST_MEMORY, "{} MiB", peak(pid) / MIB);
    let mut input = sender.join().unwrap();
    let end = REQUESTS + 1;
    send(&mut input, &request(end, "shutdown", Value::Null)).unwrap();
    send(&mut input, &notification("exit", Value::Null)).unwrap();
    while let Some(message) = next(&mut output) {
        if let Some(id) = answered(&message) {
            *answers.entry(id).or_insert(0) += 1;
        }
    }
    assert!(answers.keys().copied().eq(1..=end), "{answers:?}");
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
    assert_eq!(wait(&mut child, "exit"), 0);
}

#[test]
fn the_end_of_its_input_and_of_its_output_ends_the_server() {
    for closes_input in [true, false] {
        let workspace = Workspace::new(&[]);
        let Session {
            mut child,
            mut input,
            output,
        } = session(&workspace);
        let before = peak(child.id());
        for id in 1..=FIRST {
            let params = json!({ "path": "large.txt" });
            send(&mut input, &request(id, "sightline/readFile", params)).unwrap();
        }
        wait_until_full(child.id(), before);
        // Nothing is read after this one.
        let last = request(
            FIRST + 1,
            "sightline/readFile",
            json!({ "path": "large.txt" }),
        );
        send(&mut input, &last).unwrap();
        if closes_input {
            drop(input);
            assert_eq!(wait(&mut child, "closed input"), 1);
            drop(output);
        } else {
            drop(output);
            assert_eq!(wait(&mut child, "closed output"), 1);
            drop(input);
        }
    }
}

/// Hooks ask over the socket. Jobs of the editor that wait for room also occupy no thread that hooks
/// need.
#[test]
fn a_socket_is_answered_while_the_editor_reads_nothing() {
    let workspace = Workspace::new(&[]);
    let Session {
        mut child,
        mut input,
        mut output,
    } = session(&workspace);
    let pid = child.id();
    let before = peak(pid);
    // The sockets are open after that.
    let list = request(FIRST + 1, "sightline/listTasks", json!({}));
    send(&mut input, &list).unwrap();
    while answered(&next(&mut output).unwrap()) != Some(FIRST + 1) {}
    for id in 1..=FIRST {
        let params = json!({ "path": "large.txt" });
        send(&mut input, &request(id, "sightline/readFile", params)).unwrap();
    }
    wait_until_full(pid, before);
    for arguments in [
        ["access", "large.txt"].as_slice(),
        &["checkpoint", "create"],
    ] {
        let (code, text, complaint) = run(&workspace, arguments);
        assert_eq!((code, complaint.as_str()), (0, ""), "{text}");
    }
    drop((input, output));
    wait(&mut child, "closed input and output");
}

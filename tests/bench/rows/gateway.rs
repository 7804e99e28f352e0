//! Requests through `sightline gateway`, compared with the same requests without it: the time to the first byte of
//! the response, each on a new connection, and between the chunks of a stream; memory after many requests. Each request has
//! new texts, none of which is denied.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    Run, progress,
    report::{Goal, Row, Series, Unit},
};

const PART: &str = "gateway";
/// Requests per round, of each size.
const REQUESTS: usize = 40;
/// Chunks of a stream, each of which the client acknowledges.
const CHUNKS: usize = 200;
/// Requests after which memory is measured, and after which it should be the same.
const WARM: usize = 1_000;
/// Milliseconds that the first byte comes later: size of the request, and the limit.
const FIRST_BYTE: [(usize, &str, Goal); 2] = [
    (
        100_000,
        "100 KB",
        Goal::Value {
            must: 2.0,
            aim: 1.0,
        },
    ),
    (
        1_000_000,
        "1 MB",
        Goal::Value {
            must: 8.0,
            aim: 4.0,
        },
    ),
];
/// Milliseconds that a chunk and its acknowledgement take longer.
const CHUNK: Goal = Goal::Value {
    must: 0.3,
    aim: 0.1,
};
/// Megabytes that memory grows.
const GROWTH: Goal = Goal::Value {
    must: 8.0,
    aim: 2.0,
};

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let program = Path::new(env!("CARGO_BIN_EXE_sightline")).with_file_name("sightline-gateway");
    if !program.exists() {
        let build = "build it first: cargo build --release -p sightline-gateway";
        run.report.skip(PART, build);
        return Vec::new();
    }
    let folder = tempfile::tempdir().unwrap();
    make_project(&folder.path().join("project"));
    let provider = provider();
    let (mut gateway, through) = start(folder.path(), &provider);
    let direct = Address::new(&provider);
    let judged = run.judged();
    let mut rows = Vec::new();
    let mut number = 0;
    let mut body = |bytes: usize| {
        number += 1;
        request(number, bytes)
    };
    for (bytes, name, goal) in FIRST_BYTE {
        progress(&format!("{PART}: {name}"));
        let mut series: [Series; 2] = Default::default();
        for _ in 0..run.rounds * REQUESTS {
            for (address, series) in [&direct, &through].into_iter().zip(&mut series) {
                series.0.push(first_byte(address, &body(bytes)));
            }
        }
        let added = series[1].median() - series[0].median();
        let row = Row::new(
            PART,
            "first byte of a response, added",
            &Series(vec![added]),
        );
        rows.push(row.on(name).goal(goal.only_if(judged)));
    }
    let mut series: [Series; 2] = Default::default();
    for _ in 0..run.rounds {
        for (address, series) in [&direct, &through].into_iter().zip(&mut series) {
            chunks(address, series);
        }
    }
    let added = series[1].median() - series[0].median();
    let row = Row::new(
        PART,
        "chunk of a stream and its answer, added",
        &Series(vec![added]),
    );
    rows.push(row.on("a stream").goal(CHUNK.only_if(judged)));

    let many = if run.quick { 200 } else { 10_000 };
    progress(&format!("{PART}: {many} requests"));
    let mut before = None;
    for at in 0..many {
        if at == many.min(WARM) / 2 {
            before = memory(&gateway);
        }
        first_byte(&through, &body(10_000));
    }
    if let (Some(before), Some(after)) = (before, memory(&gateway)) {
        let row = Row::new(PART, "memory, growth", &Series(vec![after - before]));
        let row = row.on(format!("{many} requests")).unit(Unit::Megabytes);
        rows.push(row.goal(GROWTH.only_if(judged)));
    }
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    rows
}

/// Writes a project with secrets, denied texts and folders.
fn make_project(project: &Path) {
    for folder in 0..200 {
        let folder = project.join(format!("src/part{folder}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.rs"), "fn main() {}\n").unwrap();
    }
    let text = |what: &str, count: usize| -> String {
        (0..count)
            .map(|at| format!("{what}_{at}=kR{at}vQ2mXw7Lp9Zt{at}Bd{what}\n"))
            .collect()
    };
    fs::write(project.join(".env"), text("KEY", 40)).unwrap();
    fs::create_dir(project.join("private")).unwrap();
    for file in 0..50 {
        let name = project.join(format!("private/{file}.txt"));
        fs::write(name, text(&format!("line of file {file}"), 100)).unwrap();
    }
    fs::write(project.join(".clineignore"), "private/\n").unwrap();
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(project)
        .status();
    assert!(git.unwrap().success());
}

/// Returns a request as Claude Code sends it, with new texts.
fn request(number: usize, bytes: usize) -> String {
    let mut messages = Vec::new();
    let mut size = 0;
    for at in 0.. {
        if size >= bytes {
            break;
        }
        let mut text = String::new();
        for line in 0..40 {
            let _ = writeln!(
                text,
                "{line:>6}\tlet value_{at}_{number} = compute(\"{line}\", {number});"
            );
        }
        size += text.len() + 200;
        let id = format!("toolu_{number}_{at}");
        messages.push(json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": id, "name": "Read", "input": { "file_path": "src/part1/main.rs" } },
        ] }));
        messages.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": text },
        ] }));
    }
    // A conversation has a hundred requests.
    let session = format!("s{}", number / 100);
    json!({ "model": "claude-sonnet-4-5", "stream": true, "prompt_cache_key": session, "messages": messages })
        .to_string()
}

/// Where requests go.
struct Address {
    host: String,
    path: String,
}

impl Address {
    fn new(url: &str) -> Self {
        let rest = url.trim_start_matches("http://");
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self {
            host: host.to_owned(),
            path: format!("/{path}/v1/messages").replace("//", "/"),
        }
    }

    fn send(&self, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_nodelay(true).unwrap();
        let (path, host, length) = (&self.path, &self.host, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    }
}

/// Returns the milliseconds from the start of a connection to the first byte of the response.
fn first_byte(address: &Address, body: &str) -> f64 {
    let began = Instant::now();
    let mut stream = address.send(body);
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    let elapsed = began.elapsed().as_secs_f64() * 1e3;
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("TTP/1.1 200"), "{rest}");
    elapsed
}

/// Reads a stream whose chunks come when the client has acknowledged the one before.
fn chunks(address: &Address, series: &mut Series) {
    let acknowledge = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = acknowledge.local_addr().unwrap().port();
    let body = json!({ "model": "m", "acknowledge": port, "messages": [] }).to_string();
    let mut lines = BufReader::new(address.send(&body)).lines();
    let (mut sender, _) = acknowledge.accept().unwrap();
    sender.set_nodelay(true).unwrap();
    for _ in 0..CHUNKS {
        let began = Instant::now();
        sender.write_all(b"x").unwrap();
        let is_event = |line: &Result<String, _>| line.as_ref().unwrap().starts_with("data:");
        lines.find(is_event).unwrap().unwrap();
        series.0.push(began.elapsed().as_secs_f64() * 1e3);
    }
}

/// Starts a provider. Returns its address.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(|| serve(stream.unwrap()));
        }
    });
    format!("http://{address}")
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut output = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    loop {
        let (mut length, mut is_last) = (0, false);
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|read| read > 2) {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            is_last |= lower.trim_end() == "connection: close";
            line.clear();
        }
        let mut body = vec![0; length];
        if line.is_empty() || input.read_exact(&mut body).is_err() {
            return;
        }
        let mut text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n".to_owned();
        let is_stream = body.windows(11).take(40).any(|part| part == b"acknowledge");
        if !is_stream {
            text.push_str("Content-Length: 9\r\n\r\ndata: 1\n\n");
            output.write_all(text.as_bytes()).unwrap();
            if is_last {
                return;
            }
            continue;
        }
        text.push_str("Transfer-Encoding: chunked\r\n\r\n");
        output.write_all(text.as_bytes()).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let port = u16::try_from(body["acknowledge"].as_u64().unwrap()).unwrap();
        let mut acknowledged = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut byte = [0];
        while acknowledged.read_exact(&mut byte).is_ok() {
            output.write_all(b"9\r\ndata: 1\n\n\r\n").unwrap();
        }
        return;
    }
}

/// Starts a gateway. Returns its address for the provider.
fn start(folder: &Path, provider: &str) -> (Child, Address) {
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_sightline"))
        .args(["gateway", "--root"])
        .arg(folder.join("project"))
        .arg("--storage")
        .arg(folder.join("data"))
        .arg("--upstream")
        .arg(format!("anthropic={provider}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let url = format!("{}/anthropic", started["url"].as_str().unwrap());
    (gateway, Address::new(&url))
}

/// Returns the resident memory of a process in megabytes.
fn memory(process: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

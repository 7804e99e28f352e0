//! What the page refuses, and what it says without a token.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
    time::Duration,
};

use serde_json::json;

use super::{Answer, Events, PATIENCE, Ui};
use crate::harness::{Workspace, program};

#[test]
fn what_the_page_does_not_send_is_refused() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let ui = Ui::start(&workspace, &[]);
    let body = r#"{"method":"page/state"}"#;
    let with = |name: &'static str, value: &str| {
        let mut headers = ui.headers();
        headers.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            headers.push((name, value.to_owned()));
        }
        headers
    };
    let host = format!("127.0.0.1:{}", ui.port);
    let own = format!("http://{host}");
    for (name, value, status) in [
        ("Host", host.as_str(), 200),
        ("Host", "evil.example", 403),
        ("Host", "localhost", 403),
        ("Host", &format!("localhost:{}", ui.port), 403),
        ("Host", &format!("127.0.0.1.evil.example:{}", ui.port), 403),
        ("Host", "", 403),
        ("Origin", &own, 200),
        ("Origin", "null", 403),
        ("Origin", "https://evil.example", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "none", 403),
        ("Content-Type", "application/json; charset=utf-8", 200),
        ("Content-Type", "text/plain", 403),
        ("Content-Type", "application/x-www-form-urlencoded", 403),
        ("Content-Type", "", 403),
        ("Authorization", "", 401),
        ("Authorization", "Bearer", 401),
        ("Authorization", "Bearer wrong", 401),
        ("Authorization", &ui.token, 401),
        ("Authorization", &format!("Basic {}", ui.token), 401),
        ("Authorization", &format!("Bearer {}x", ui.token), 401),
    ] {
        let answer = ui.request("POST /rpc", &with(name, value), body);
        assert_eq!(answer.status, status, "{name}: {value}\n{}", answer.body);
        assert_eq!(
            answer.body.contains("shop"),
            status == 200,
            "{name}: {value}"
        );
    }
    let twice = [ui.headers(), vec![("Origin", own.clone()), ("Origin", own)]].concat();
    assert_eq!(ui.request("POST /rpc", &twice, body).status, 403);
    for (line, status) in [
        ("GET /rpc", 403),
        ("PUT /rpc", 403),
        ("OPTIONS /rpc", 403),
        ("POST /events", 403),
        ("POST /", 403),
        ("HEAD /", 403),
        ("GET /nowhere", 404),
        ("GET /../Cargo.toml", 404),
        ("POST http://evil.example/rpc", 403),
    ] {
        let answer = ui.request(line, &ui.headers(), body);
        assert_eq!(answer.status, status, "{line}");
        assert!(!answer.head.contains("access-control-"), "{line}");
        assert!(!answer.body.contains("shop"), "{line}");
    }
}

#[test]
fn every_answer_has_the_security_headers() {
    let workspace = Workspace::new(&[]);
    let ui = Ui::start(&workspace, &[]);
    let body = r#"{"method":"page/state"}"#;
    let own = ui.headers();
    let get = |line: &str| ui.request(line, &own, "");
    for answer in [
        get("GET /"),
        get("GET /ui.js"),
        get("GET /nowhere"),
        ui.request("POST /rpc", &own, body),
        ui.request("POST /rpc", &own[..1], body),
        ui.request("POST /rpc", &own[1..], body),
        ui.request("POST /rpc", &own, "no JSON"),
    ] {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'; require-trusted-types-for 'script'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cross-origin-opener-policy: same-origin\r\n",
            "cross-origin-resource-policy: same-origin\r\n",
            "cache-control: no-store\r\n",
        ] {
            let head = format!("{}\r\n", answer.head);
            assert!(head.contains(header), "{header}\n{head}");
        }
        assert!(!answer.head.contains("set-cookie"), "{}", answer.head);
    }
}

#[test]
fn files_without_a_token_contain_no_data() {
    let workspace = Workspace::new(&[("planted.txt", "1\n")]);
    let ui = Ui::start(&workspace, &[]);
    let host = &ui.headers()[..1];
    for path in [
        "/",
        "/index.html",
        "/ui.js",
        "/ui.css",
        "/icon.svg",
        "/open",
    ] {
        let answer = ui.request(&format!("GET {path}"), host, "");
        assert_eq!(answer.status, 200, "{path}");
        let root = workspace.root().display().to_string();
        for secret in [ui.token.as_str(), &root, "planted"] {
            assert!(!answer.body.contains(secret), "{path}: {secret}");
        }
        for address in ["http://", "https://"] {
            let mut found = answer.body.match_indices(address);
            // Names of XML languages, which are not requested.
            let is_name =
                |(at, _): (usize, &str)| answer.body[at..].starts_with("http://www.w3.org/");
            assert!(found.all(is_name), "{path}: {address}");
        }
    }
    let visited = |site: &str, path: &str| {
        let headers = [host, &[("Sec-Fetch-Site", site.to_owned())]].concat();
        ui.request(&format!("GET {path}"), &headers, "").status
    };
    assert_eq!(visited("none", "/"), 200);
    assert_eq!(visited("same-origin", "/ui.js"), 200);
    for (site, path) in [
        ("cross-site", "/"),
        ("same-site", "/"),
        ("none", "/ui.js"),
        ("cross-site", "/ui.js"),
        ("cross-site", "/open"),
    ] {
        assert_eq!(visited(site, path), 403, "{site} {path}");
    }
    let mut opened = host.to_vec();
    for (name, value) in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ] {
        opened.push((name, value.to_owned()));
    }
    assert_eq!(ui.request("GET /open", &opened, "").status, 200);
    assert_eq!(ui.request("GET /", &opened, "").status, 403);
    opened.pop();
    opened.push(("Sec-Fetch-Dest", "iframe".to_owned()));
    assert_eq!(ui.request("GET /open", &opened, "").status, 403);
}

#[test]
fn requests_have_a_maximum_size() {
    let workspace = Workspace::new(&[]);
    let ui = Ui::start(&workspace, &[]);
    let body = |bytes: usize| {
        let text = r#"{"method":"page/state","more":""}"#;
        text.replace("\"\"", &format!("\"{}\"", "x".repeat(bytes - text.len())))
    };
    let status = |bytes| ui.request("POST /rpc", &ui.headers(), &body(bytes)).status;
    assert_eq!(status(1 << 20), 200);
    assert_eq!(status((1 << 20) + 1), 413);
    let mut headers = ui.headers();
    headers.push(("X", "x".repeat(1 << 20)));
    // The connection may be reset before all headers were sent.
    let answer = ui.request("POST /rpc", &headers, r#"{"method":"page/state"}"#);
    assert!(matches!(answer.status, 0 | 400 | 431), "{}", answer.head);
}

#[test]
fn sixteen_connections_have_the_token_and_strangers_keep_none_out() {
    let workspace = Workspace::new(&[]);
    let ui = Ui::start(&workspace, &[]);
    let state = || ui.request("POST /rpc", &ui.headers(), r#"{"method":"page/state"}"#);
    let strangers: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(("127.0.0.1", ui.port)).unwrap())
        .collect();
    assert_eq!(state().status, 200);
    drop(strangers);
    let mut open: Vec<Events> = (0..16).map(|_| Events::open(&ui)).collect();
    assert_eq!(state().status, 503);
    open.pop();
    let end = std::time::Instant::now() + PATIENCE;
    while state().status != 200 {
        assert!(std::time::Instant::now() < end, "the place stays taken");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Only the address has the token: neither the arguments of a process nor a file that others can read.
#[cfg(target_os = "linux")]
#[test]
fn a_browser_gets_the_token_from_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new(&[]);
    let bin = workspace.root().with_file_name("bin");
    fs::create_dir(&bin).unwrap();
    let opened = workspace.root().with_file_name("opened");
    let script = format!(
        "#!/bin/sh\necho \"$*\" > {0}.new; mv {0}.new {0}\n",
        opened.display()
    );
    fs::write(bin.join("xdg-open"), script).unwrap();
    fs::set_permissions(bin.join("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut ui = program()
        .args(["ui", "--root"])
        .arg(workspace.root())
        .arg("--storage")
        .arg(workspace.data())
        .env("PATH", path)
        .env("DISPLAY", ":9")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(ui.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let token = line.trim_end().split_once("/#").unwrap().1;
    let end = std::time::Instant::now() + PATIENCE;
    let argument = loop {
        if let Ok(argument) = fs::read_to_string(&opened) {
            break argument.trim_end().to_owned();
        }
        assert!(std::time::Instant::now() < end, "no browser was opened");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(!argument.contains(token), "{argument}");
    let content = fs::read_to_string(&argument).unwrap();
    assert!(content.contains(&format!("/open#{token}")), "{content}");
    let mode = fs::metadata(&argument).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    // Ctrl-C ends it, and the file is deleted.
    let pid = rustix::process::Pid::from_child(&ui);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(ui.wait().unwrap().success());
    assert!(!std::path::Path::new(&argument).exists());
}

#[test]
fn the_way_from_another_machine_is_printed() {
    let workspace = Workspace::new(&[]);
    let mut ui = Ui::start(&workspace, &[]);
    let mut errors = String::new();
    let stderr = ui.process.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut errors).unwrap();
    let _ = ui.process.kill();
    let _ = ui.process.wait();
    let port = ui.port;
    assert!(
        errors.contains(&format!("ssh -N -L {port}:127.0.0.1:{port} HOST")),
        "{errors}"
    );
    let Answer { status, .. } = {
        let other = Ui::start(&workspace, &["--port", &port.to_string()]);
        assert_eq!(other.port, port);
        // The token of an earlier start is refused.
        other.request("POST /rpc", &ui.headers(), "{}")
    };
    assert_eq!(status, 401);
}

/// A connection that sends no headers ends, also after a request.
#[test]
fn headers_must_arrive() {
    let workspace = Workspace::new(&[]);
    let ui = Ui::start(&workspace, &[]);
    let mut slow = TcpStream::connect(("127.0.0.1", ui.port)).unwrap();
    slow.write_all(b"POST /rpc HTTP/1.1\r\nHost:").unwrap();
    slow.set_read_timeout(Some(2 * PATIENCE)).unwrap();
    let host = format!("127.0.0.1:{}", ui.port);
    let mut idle = TcpStream::connect(("127.0.0.1", ui.port)).unwrap();
    idle.write_all(format!("GET /icon.svg HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .unwrap();
    idle.set_read_timeout(Some(2 * PATIENCE)).unwrap();
    for mut stream in [slow, idle] {
        let mut rest = Vec::new();
        // An end, or a reset.
        let read = stream.read_to_end(&mut rest);
        let is_timeout = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_timeout, "{}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(ui.rpc("page/state", json!({}))["result"]["readOnly"], false);
}

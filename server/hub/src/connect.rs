//! Connects standard input and output to a server that runs at an address of this machine: the streamable
//! HTTP transport, and the older one with server-sent events.
//!
//! The address is a literal loopback address, so no name is looked up, and redirects are not followed. It is
//! a small HTTP/1.1 client without TLS, which opens a connection for each message.

#![allow(
    clippy::exit,
    clippy::print_stderr,
    reason = "the process ends with its server, while another thread reads standard input"
)]

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use sightline_agents::servers::address::loopback;
use sightline_base::escape::one_line;

use crate::{
    message::{Kind, MAX_MESSAGE, Message, error_response, is_broken_response},
    process::{Line, print, read_line},
};

/// Variable with the headers of requests, as JSON: arguments are visible to other users.
pub const HEADERS: &str = "SIGHTLINE_MCP_HEADERS";
/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time before the stream of the server is opened again.
const RECONNECT: Duration = Duration::from_secs(1);
/// Maximum size of the head of a response, in bytes.
const MAX_HEAD: u64 = 64 << 10;

/// How to reach a server.
struct Connection {
    address: SocketAddr,
    host: String,
    path: Mutex<String>,
    headers: BTreeMap<String, String>,
    /// Session and version of the protocol, after `initialize`.
    session: Mutex<Vec<(&'static str, String)>>,
}

struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

/// The body of a response.
struct Body {
    input: BufReader<TcpStream>,
    /// Bytes that are left, of the body or of the chunk.
    left: Option<u64>,
    is_chunked: bool,
}

/// An event of a stream.
#[derive(Default)]
struct Event {
    kind: String,
    data: String,
}

/// Relays messages until the end of standard input, or until the server is gone.
///
/// # Errors
/// If the address is not one of this machine, the server cannot be reached, or the standard streams fail.
pub fn connect(url: &str, kind: Option<&str>, headers: Option<&str>) -> io::Result<()> {
    let address = loopback(url).map_err(io::Error::other)?;
    let headers = headers.map_or(Ok(BTreeMap::new()), serde_json::from_str)?;
    let connection = Arc::new(Connection {
        host: address.host,
        address: address.address,
        path: Mutex::new(address.path),
        headers,
        session: Mutex::default(),
    });
    if kind == Some("sse") {
        return connection.events(None);
    }
    let mut input = io::stdin().lock();
    let mut is_first = true;
    while let Some(line) = read_line(&mut input)? {
        let Line::Text(line) = line else { continue };
        let Ok(messages) = Message::parse_line(&line) else {
            continue;
        };
        let id = messages
            .first()
            .filter(|one| one.kind == Kind::Request)
            .map(|one| one.id().to_owned());
        if is_first {
            is_first = false;
            let response = connection.post(&line)?;
            if kind.is_none() && matches!(response.status, 400 | 404 | 405) {
                // A server of the older transport.
                drop(input);
                return connection.events(Some(line));
            }
            connection.note_session(&response);
            connection.answer(response, id.as_deref())?;
            let listening = connection.clone();
            thread::spawn(move || listening.listen());
        } else if id.is_some() {
            // Others do not wait for the answer.
            let connection = connection.clone();
            thread::spawn(move || connection.ask(&line, id.as_deref()));
        } else {
            connection.ask(&line, None);
        }
    }
    if !connection.session.lock().is_empty() {
        // The server forgets the session in any case after a while.
        let _ = connection.request("DELETE", b"");
    }
    Ok(())
}

impl Connection {
    /// Sends a request on a new connection.
    fn request(&self, method: &str, body: &[u8]) -> io::Result<Response> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT)?;
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n",
            self.path.lock(),
            self.host
        );
        if method == "GET" {
            head = head.replace("application/json, ", "");
        } else {
            head += &format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            );
        }
        let session = self.session.lock().clone();
        let own = session.iter().map(|(name, value)| (*name, value));
        let configured = self.headers.iter().map(|(name, value)| (&**name, value));
        for (name, value) in configured.chain(own) {
            if name.contains(['\r', '\n', ':']) || value.contains(['\r', '\n']) {
                return Err(io::Error::other("a header is invalid"));
            }
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(&[head.as_bytes(), b"\r\n", body].concat())?;
        Response::read(stream)
    }

    fn post(&self, line: &[u8]) -> io::Result<Response> {
        self.request("POST", line)
    }

    fn note_session(&self, response: &Response) {
        let mut session = self.session.lock();
        if let Some(id) = response.header("mcp-session-id") {
            session.push(("Mcp-Session-Id", id.to_owned()));
        }
    }

    /// Sends a message and prints the answer. Ends the process if the server is gone.
    fn ask(&self, line: &[u8], id: Option<&str>) {
        let answered = self
            .post(line)
            .and_then(|response| self.answer(response, id));
        if let Err(error) = answered {
            end(&error);
        }
    }

    /// Prints the messages of a response. A request gets an error if its answer is not among them.
    fn answer(&self, mut response: Response, id: Option<&str>) -> io::Result<()> {
        let is_stream = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut is_answered = false;
        let why = match response.status {
            200 if is_stream => loop {
                match response.event() {
                    Ok(Some(event)) => is_answered |= self.receive(&event.data, id)?,
                    Ok(None) => break "it has closed the stream without an answer".to_owned(),
                    Err(error) => break format!("its answer cannot be read: {error}"),
                }
            },
            // The session is over: the next call starts another one.
            404 if !self.session.lock().is_empty() => {
                return Err(io::Error::other(
                    "the server does not know the session any more",
                ));
            }
            status => match response.text() {
                Ok(body) => {
                    is_answered = self.receive(&body, id)?;
                    let hint = match status {
                        300..=399 => ": redirects are not followed",
                        401 | 403 => ": the user can check its `headers`",
                        404 | 405 => ": the user can check its `url`",
                        _ => "",
                    };
                    if !is_answered && id.is_some() {
                        // For the log: only the user may see it without a judgement.
                        let start: String = body.chars().take(200).collect();
                        eprintln!("HTTP status {status}: {}", one_line(&start));
                    }
                    format!("HTTP status {status} without a valid answer{hint}")
                }
                Err(error) => format!("its answer (HTTP status {status}) cannot be read: {error}"),
            },
        };
        match id {
            Some(id) if !is_answered => {
                let why = format!("the server at {} failed: {why}", self.host);
                print(error_response(id, -32000, &why))
            }
            _ => Ok(()),
        }
    }

    /// Prints a message. Returns whether it answers a request.
    fn receive(&self, data: &str, id: Option<&str>) -> io::Result<bool> {
        // Line ends are white space between values only.
        let line = data.replace(['\n', '\r'], " ");
        let Ok(messages) = Message::parse_line(line.as_bytes()) else {
            if id.is_none() && is_broken_response(line.as_bytes()) {
                // The reader knows what was asked.
                print(line.into_bytes())?;
            }
            return Ok(false);
        };
        let is_answer = messages
            .iter()
            .any(|one| one.kind == Kind::Response && Some(one.id()) == id);
        if let Some(version) = messages
            .iter()
            .find_map(|one| one.members.object("result")?.text("protocolVersion"))
        {
            let mut session = self.session.lock();
            session.retain(|(name, _)| *name != "MCP-Protocol-Version");
            session.push(("MCP-Protocol-Version", version));
        }
        print(line.into_bytes())?;
        Ok(is_answer)
    }

    /// Prints what the server sends on its own, if it does.
    fn listen(&self) {
        loop {
            let Ok(mut response) = self.request("GET", b"") else {
                return;
            };
            if response.status != 200 {
                return;
            }
            while let Ok(Some(event)) = response.event() {
                if self.receive(&event.data, None).is_err() {
                    return;
                }
            }
            thread::sleep(RECONNECT);
        }
    }

    /// The older transport: a stream of events names the path for messages.
    fn events(self: &Arc<Self>, first: Option<Vec<u8>>) -> io::Result<()> {
        let mut response = self.request("GET", b"")?;
        if response.status != 200 {
            let status = response.status;
            return Err(io::Error::other(format!("HTTP status {status}")));
        }
        let endpoint = loop {
            match response.event()? {
                Some(event) if event.kind == "endpoint" => break event.data,
                Some(_) => {}
                None => return Err(io::Error::other("the server names no path for messages")),
            }
        };
        let path = match endpoint.strip_prefix("http://") {
            Some(rest)
                if rest
                    .strip_prefix(&*self.host)
                    .is_some_and(|path| path.starts_with('/')) =>
            {
                rest[self.host.len()..].to_owned()
            }
            None if endpoint.starts_with('/') => endpoint,
            _ => {
                return Err(io::Error::other(
                    "the server names another address for messages",
                ));
            }
        };
        *self.path.lock() = path;
        let sender = self.clone();
        thread::spawn(move || {
            let outcome = sender.send_lines(first);
            if let Err(error) = outcome {
                end(&error);
            }
            std::process::exit(0);
        });
        while let Some(event) = response.event()? {
            self.receive(&event.data, None)?;
        }
        Err(io::Error::other("the server has closed the stream"))
    }

    fn send_lines(&self, first: Option<Vec<u8>>) -> io::Result<()> {
        if let Some(line) = first {
            self.send(&line)?;
        }
        let mut input = io::stdin().lock();
        while let Some(line) = read_line(&mut input)? {
            if let Line::Text(line) = line {
                self.send(&line)?;
            }
        }
        Ok(())
    }

    fn send(&self, line: &[u8]) -> io::Result<()> {
        let status = self.post(line)?.status;
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(io::Error::other(format!("HTTP status {status}")))
    }
}

impl Response {
    fn read(stream: TcpStream) -> io::Result<Self> {
        let mut input = BufReader::new(stream);
        let mut head = input.by_ref().take(MAX_HEAD);
        let mut line = String::new();
        head.read_line(&mut line)?;
        let invalid = || io::Error::other("the server does not speak HTTP");
        let status = line
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.split(' ').nth(1))
            .and_then(|status| status.trim().parse().ok())
            .ok_or_else(invalid)?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            head.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                if !line.ends_with('\n') {
                    return Err(invalid());
                }
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let is_chunked = header(&headers, "transfer-encoding")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("chunked"));
        let left = match header(&headers, "content-length") {
            _ if is_chunked => Some(0),
            _ if status == 204 => Some(0),
            Some(length) => Some(length.parse().map_err(|_| invalid())?),
            None => None,
        };
        Ok(Self {
            status,
            headers,
            body: BufReader::new(Body {
                input,
                left,
                is_chunked,
            }),
        })
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        header(&self.headers, wanted)
    }

    fn text(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body
            .by_ref()
            .take(MAX_MESSAGE as u64)
            .read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the next event with data. `None` at the end of the stream.
    fn event(&mut self) -> io::Result<Option<Event>> {
        let mut event = Event::default();
        loop {
            let Some(line) = read_line(&mut self.body)? else {
                return Ok(None);
            };
            let Line::Text(line) = line else {
                return Err(io::Error::other("a message is too long"));
            };
            let line = String::from_utf8_lossy(&line);
            if line.is_empty() {
                if event.data.is_empty() {
                    event = Event::default();
                    continue;
                }
                return Ok(Some(event));
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => event.kind = value.to_owned(),
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                    if event.data.len() > MAX_MESSAGE {
                        return Err(io::Error::other("a message is too long"));
                    }
                }
                _ => {}
            }
        }
    }
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.as_str())
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_chunked && self.left == Some(0) {
            let mut size = String::new();
            self.input.by_ref().take(MAX_HEAD).read_line(&mut size)?;
            if size.trim().is_empty() {
                // The end of the chunk before.
                size.clear();
                self.input.by_ref().take(MAX_HEAD).read_line(&mut size)?;
            }
            let digits = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(digits, 16)
                .map_err(|_| io::Error::other("a chunk has no size"))?;
            if size == 0 {
                self.is_chunked = false;
            }
            self.left = Some(size);
        }
        let limit = self.left.map_or(buffer.len(), |left| {
            buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX))
        });
        let read = self.input.read(&mut buffer[..limit])?;
        if read == 0 && limit > 0 && self.left.is_some() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(left) = &mut self.left {
            *left -= read as u64;
        }
        Ok(read)
    }
}

/// Ends the process, because the server is gone.
fn end(error: &io::Error) -> ! {
    eprintln!("sightline: {error}");
    std::process::exit(1)
}

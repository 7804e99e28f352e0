//! A small LSP client with timeouts.

use std::{
    io::{self, Read, Write},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_local::frame::{FrameReader, write_frame};

/// Returns the result for a request of the server, or `None` to leave it unanswered.
pub type Answerer = Box<dyn FnMut(&str, &Value) -> Option<Value> + Send>;

/// A client connected to a server.
pub struct LspClient {
    output: Option<Box<dyn Write + Send>>,
    incoming: Receiver<Value>,
    answerer: Answerer,
    /// Messages received while waiting for another one.
    set_aside: Vec<Value>,
    next_id: i64,
    deadline: Duration,
}

impl LspClient {
    /// Reads the server's output from `input` and writes to `output`. Answers the
    /// server's requests with `null` unless [`Self::answer_with`] is called.
    pub fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let (sender, incoming) = mpsc::channel();
        thread::spawn(move || {
            let mut frames = FrameReader::new(input);
            while let Ok(Some(Ok(body))) = frames.next_frame() {
                let message = serde_json::from_slice(&body).unwrap_or_else(
                    |error| json!({ "unreadable": String::from_utf8_lossy(&body), "why": error.to_string() }),
                );
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            output: Some(Box::new(output)),
            incoming,
            answerer: Box::new(|_, _| Some(Value::Null)),
            set_aside: Vec::new(),
            next_id: 0,
            deadline: Duration::from_secs(30),
        }
    }

    /// Sets the timeout for each wait.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Answers the server's requests with `answerer`.
    pub fn answer_with(
        &mut self,
        answerer: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static,
    ) {
        self.answerer = Box::new(answerer);
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// The server's input is closed.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let output = self.output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        output.write_all(bytes)?;
        output.flush()
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The server's input is closed.
    pub fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut frame = Vec::new();
        write_frame(&mut frame, message.to_string().as_bytes())?;
        self.send_raw(&frame)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server's input is closed.
    pub fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Sends a request without waiting for the response. Returns its id.
    ///
    /// # Errors
    /// The server's input is closed.
    pub fn start(&mut self, method: &str, params: Value) -> io::Result<i64> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Waits for the response to request `id`.
    ///
    /// # Errors
    /// The wait timed out, or the server closed the connection.
    pub fn wait(&mut self, id: i64) -> io::Result<Result<Value, Value>> {
        let id = Value::from(id);
        let mut answer = self.wait_for(|message| {
            message.get("method").is_none() && message.get("id") == Some(&id)
        })?;
        Ok(match answer.get_mut("error").map(Value::take) {
            Some(error) => Err(error),
            None => Ok(answer
                .get_mut("result")
                .map(Value::take)
                .unwrap_or_default()),
        })
    }

    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// As [`Self::start`] and [`Self::wait`].
    pub fn request(&mut self, method: &str, params: Value) -> io::Result<Result<Value, Value>> {
        let id = self.start(method, params)?;
        self.wait(id)
    }

    /// Waits for a notification and returns its params.
    ///
    /// # Errors
    /// The wait timed out, or the server closed the connection.
    pub fn notified(&mut self, method: &str) -> io::Result<Value> {
        let mut message = self.wait_for(|message| {
            message.get("id").is_none() && message.get("method") == Some(&Value::from(method))
        })?;
        Ok(message
            .get_mut("params")
            .map(Value::take)
            .unwrap_or_default())
    }

    /// Waits for a message that matches `wanted`. Sets other messages aside and answers
    /// the server's requests.
    ///
    /// # Errors
    /// The wait timed out, or the server closed the connection.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> io::Result<Value> {
        if let Some(at) = self.set_aside.iter().position(&wanted) {
            return Ok(self.set_aside.remove(at));
        }
        let until = Instant::now() + self.deadline;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = match self.incoming.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    let aside = Value::from(self.set_aside.clone()).to_string();
                    let what = format!(
                        "no matching message within {:?}; received: {aside}",
                        self.deadline
                    );
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            };
            self.answer_request(&message)?;
            if wanted(&message) {
                return Ok(message);
            }
            self.set_aside.push(message);
        }
    }

    /// Returns the messages set aside so far.
    pub fn set_aside(&self) -> &[Value] {
        &self.set_aside
    }

    /// Closes the server's input.
    pub fn close(&mut self) {
        self.output = None;
    }

    fn answer_request(&mut self, message: &Value) -> io::Result<()> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Ok(());
        };
        match (self.answerer)(method, &message["params"]) {
            Some(result) => self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            None => Ok(()),
        }
    }
}

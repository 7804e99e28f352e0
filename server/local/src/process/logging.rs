//! The log: stderr or a file, at a level the client can change.
//!
//! Logs methods, ids, sizes, durations and names of settings; never the contents of
//! files, messages or prompts.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

use parking_lot::Mutex;
use sightline_protocol::settings::LogLevel;
use tracing::Level;
use tracing_subscriber::{filter::filter_fn, fmt, prelude::*};

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warn as u8);
static FILE: OnceLock<Mutex<std::fs::File>> = OnceLock::new();
static CONFIGURED_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Initializes logging for this process, once.
pub fn start() {
    let ours = filter_fn(|metadata| {
        let wanted = LEVEL.load(Ordering::Relaxed);
        // Other crates log warnings and errors only.
        let cap = if metadata.target().starts_with("sightline") {
            wanted
        } else {
            wanted.min(LogLevel::Warn as u8)
        };
        level_number(*metadata.level()) <= cap
    });
    let layer = fmt::layer()
        .with_ansi(false)
        .with_span_events(fmt::format::FmtSpan::CLOSE)
        .with_writer(|| LogOutput)
        .with_filter(ours);
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// Sets the log level.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Redirects the log to a file. Only the first call has an effect, even if it fails.
///
/// # Errors
/// The path is not a regular file or cannot be opened for appending.
pub fn set_file(path: &Path) -> io::Result<()> {
    if CONFIGURED_FILE.set(path.to_path_buf()).is_err() {
        return Ok(());
    }
    // Opening a FIFO would block until it has a reader.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("not a regular file"));
    }
    let mut options = sightline_base::storage::atomic_file::private_options();
    options.create(true).append(true);
    let _ = FILE.set(Mutex::new(options.open(path)?));
    Ok(())
}

fn level_number(level: Level) -> u8 {
    let level = match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    };
    level as u8
}

struct LogOutput;

impl Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match FILE.get() {
            Some(file) => file.lock().write(bytes),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

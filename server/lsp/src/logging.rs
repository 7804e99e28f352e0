//! The log: standard error, or a file, at a level the client can change.
//!
//! What is logged are methods, ids, sizes, durations and settings' names; never
//! contents of files, messages or prompts.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

use sightline_protocol::settings::LogLevel;
use tracing::Level;
use tracing_subscriber::{filter::filter_fn, fmt, prelude::*};

use crate::sync::lock;

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warn as u8);
static FILE: OnceLock<Mutex<std::fs::File>> = OnceLock::new();
static CONFIGURED_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Starts logging for this process; later calls do nothing.
pub fn start() {
    let ours = filter_fn(|metadata| {
        let wanted = LEVEL.load(Ordering::Relaxed);
        // Other crates are heard only when something is wrong.
        let cap = if metadata.target().starts_with("sightline") {
            wanted
        } else {
            wanted.min(LogLevel::Warn as u8)
        };
        level_number(*metadata.level()) <= cap
    });
    let layer = fmt::layer()
        .with_ansi(false)
        .with_writer(|| LogOutput)
        .with_filter(ours);
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// Changes the level.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Sends the log to a file from now on; the first file named stays, also when
/// it cannot be used.
///
/// # Errors
/// The file is no regular file or cannot be opened for appending; told once.
pub fn set_file(path: &Path) -> io::Result<()> {
    if CONFIGURED_FILE.set(path.to_path_buf()).is_err() {
        return Ok(());
    }
    // Opening a named pipe would wait for its reader.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("is no regular file"));
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
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
            Some(file) => lock(file).write(bytes),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

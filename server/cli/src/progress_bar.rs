//! A progress bar on the terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use sightline_engine::progress::{ProgressEvent, ProgressListener};

/// Draws a bar on stderr. Returns `None` if that is not a terminal.
pub(super) fn listener() -> Option<ProgressListener> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let bar: Mutex<Option<ProgressBar>> = Mutex::default();
    let title: Mutex<String> = Mutex::default();
    Some(Box::new(move |heard| match heard {
        ProgressEvent::Begin(begun) => *title.lock() = begun.to_owned(),
        // Created with the first report, so short operations show no bar.
        ProgressEvent::Report { message, amount } => {
            let mut bar = bar.lock();
            let bar = bar.get_or_insert_with(ProgressBar::no_length);
            draw(bar, &title.lock(), message, amount);
        }
        ProgressEvent::End => {
            if let Some(bar) = bar.lock().take() {
                bar.finish_and_clear();
            }
        }
    }))
}

fn draw(bar: &ProgressBar, title: &str, message: &str, amount: Option<(u64, u64)>) {
    let template = match amount {
        Some(_) => "{prefix}  {wide_bar} {percent:>3} %  {msg}",
        None => "{prefix}  {spinner} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(title.to_owned());
    bar.set_message(message.to_owned());
    match amount {
        Some((done, total)) => {
            bar.set_length(total);
            bar.set_position(done);
        }
        None => bar.tick(),
    }
}

//! Threads for the work of a request that is worth sharing out; most takes
//! milliseconds, and the largest that limits allow some hundreds of them.
//!
//! Checkpoints work on rayon's own threads, for seconds where a tree is large;
//! who only wants to list a folder must not stand behind that.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

/// Passing over so many bytes of text takes longer than other threads take to wake
/// up: half a millisecond against tens of microseconds.
const WORTH_SHARING: usize = 1024 * 1024;

/// Works where parallel iterators have threads that are soon free. Where the
/// system gives no threads, on rayon's own.
pub(crate) fn shared<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| {
        let name = |index| format!("shared-{index}");
        ThreadPoolBuilder::new().thread_name(name).build().ok()
    });
    match threads {
        Some(threads) => threads.install(work),
        None => work(),
    }
}

/// What `work` makes of each item and its index, in their order; `bytes` of text are
/// passed over in all.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    bytes: usize,
    work: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let work = |(index, item)| work(index, item);
    if bytes < WORTH_SHARING {
        return items.iter().enumerate().map(work).collect();
    }
    shared(|| items.par_iter().enumerate().map(work).collect())
}

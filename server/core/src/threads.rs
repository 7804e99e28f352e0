//! Threads for the short work of a request that is worth sharing out.
//!
//! Checkpoints work on rayon's own threads, for seconds where a tree is large;
//! who only wants to list a folder must not stand behind that.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

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

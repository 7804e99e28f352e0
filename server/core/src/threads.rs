//! Threads for the work of a request that is worth sharing out; most takes
//! milliseconds, and the largest that limits allow some hundreds of them.
//!
//! Checkpoints work on rayon's own threads, for seconds where a tree is large;
//! who only wants to list a folder must not stand behind that. One restore at a time
//! has threads that no one else uses; others work on rayon's own.

use std::{
    panic::resume_unwind,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

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

/// Does work that is shared out step by step on one of the threads it is shared out
/// to: handing over a step and waiting for it takes longer than many a step.
///
/// A thread that waits for others takes up what else there is to do, and that might
/// want a lock that this work holds. So these threads are for one such work at a time;
/// what comes meanwhile is done, and shared out, elsewhere.
pub(crate) fn among<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: Exclusive = Exclusive::new();
    THREADS.run(work)
}

/// Threads for one piece of work at a time.
struct Exclusive {
    threads: OnceLock<Option<ThreadPool>>,
    is_taken: AtomicBool,
}

impl Exclusive {
    const fn new() -> Self {
        Self {
            threads: OnceLock::new(),
            is_taken: AtomicBool::new(false),
        }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        if self.is_taken.swap(true, Ordering::Acquire) {
            return work();
        }
        let _freed = Freed(&self.is_taken);
        let threads = self.threads.get_or_init(|| {
            let name = |index| format!("among-{index}");
            ThreadPoolBuilder::new().thread_name(name).build().ok()
        });
        match threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }
}

/// Sets it to false, also when something panics.
struct Freed<'a>(&'a AtomicBool);

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Does both at once where one waits for the disk: the threads of a pool, of which
/// there is one for each core, have other work to do meanwhile. `other` gets a thread
/// of its own; where the system gives none it comes after `this`.
pub(crate) fn both<A: Send, B>(other: impl Fn() -> A + Sync, this: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &other);
        let this = this();
        let other = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => other(),
        };
        (other, this)
    })
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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, time::Duration};

    use super::*;

    #[test]
    fn neither_of_both_waits_for_the_other() {
        let (sender, receiver) = channel();
        let (sent, received) = both(
            || sender.send("meanwhile"),
            || receiver.recv_timeout(Duration::from_secs(60)),
        );
        assert_eq!((sent, received), (Ok(()), Ok("meanwhile")));
    }

    #[test]
    fn threads_are_for_one_work_at_a_time_and_keep_no_other_waiting() {
        let threads = Exclusive::new();
        let is_among = || {
            let this = thread::current();
            this.name().is_some_and(|name| name.starts_with("among-"))
        };
        let (inner, outer) = threads.run(|| {
            let other = || threads.run(is_among);
            let other = thread::scope(|scope| scope.spawn(other).join().unwrap());
            (other, is_among())
        });
        assert!(!inner);
        assert!(outer);
        let panics = || threads.run(|| panic!("on purpose"));
        let panicked = thread::scope(|scope| scope.spawn(panics).join());
        assert!(panicked.is_err());
        assert!(threads.run(is_among));
    }
}

//! Worker pools for requests.
//!
//! Checkpoints use the global rayon pool, for seconds in a large tree. Requests are short: most
//! take milliseconds, the largest some hundreds of milliseconds. They have their own pool, so that
//! a listing does not wait for a checkpoint. One restore at a time has a dedicated pool;
//! concurrent restores use the global one.
//!
//! Where the system starts no threads, for lack of memory or by a limit, the calling thread does the
//! work of a pool.

use std::{
    error::Error,
    mem,
    panic::resume_unwind,
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

/// Bytes of text above which work is run in parallel. Scanning this much takes half a millisecond;
/// waking up a worker takes tens of microseconds.
const MIN_PARALLEL_BYTES: usize = 1024 * 1024;

/// Starts rayon's global pool. Must be called before it is used, on the same thread: rayon itself
/// panics if no threads can be started.
pub fn start() {
    static IS_STARTED: LazyLock<bool> =
        LazyLock::new(|| match ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // Without a cause, it was running before.
            Err(error) => error.source().is_none(),
        });
    if !*IS_STARTED {
        work_here();
    }
}

/// Makes the calling thread the only worker of a pool, so that it does all parallel work itself.
fn work_here() {
    if rayon::current_thread_index().is_none() {
        let threads = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        // The thread remains a worker until it ends.
        mem::forget(threads.build());
    }
}

/// Runs `work` in a pool, or on the current thread if there is none.
fn run_in<T: Send>(threads: Option<&ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match threads {
        Some(threads) => threads.install(work),
        None => {
            work_here();
            work()
        }
    }
}

/// Runs `work` in the request pool.
pub fn in_request_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| {
        let name = |index| format!("request-{index}");
        ThreadPoolBuilder::new().thread_name(name).build().ok()
    });
    run_in(threads.as_ref(), work)
}

/// Runs a restore, which consists of many short parallel steps, inside its own pool. Entering a
/// pool for each step would take longer than many of the steps.
///
/// A pool thread that waits runs other queued work, which might wait for a lock that this restore
/// holds. So the pool runs one restore at a time; a concurrent one runs in the global pool.
pub fn in_restore_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: ExclusivePool = ExclusivePool::new();
    THREADS.run(work)
}

/// A pool that runs one piece of work at a time.
struct ExclusivePool {
    threads: OnceLock<Option<ThreadPool>>,
    is_taken: AtomicBool,
}

impl ExclusivePool {
    const fn new() -> Self {
        Self {
            threads: OnceLock::new(),
            is_taken: AtomicBool::new(false),
        }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        if self.is_taken.swap(true, Ordering::Acquire) {
            start();
            return work();
        }
        let _freed = ReleaseOnDrop(&self.is_taken);
        let threads = self.threads.get_or_init(|| {
            let name = |index| format!("restore-{index}");
            ThreadPoolBuilder::new().thread_name(name).build().ok()
        });
        run_in(threads.as_ref(), work)
    }
}

/// Clears the flag when dropped, also on a panic.
struct ReleaseOnDrop<'a>(&'a AtomicBool);

impl Drop for ReleaseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Runs both closures concurrently. `other` runs on a new thread, because it waits for the disk and
/// would block a pool thread; if no thread can be started, it runs after `this`.
pub fn join<A: Send, B>(other: impl Fn() -> A + Sync, this: impl FnOnce() -> B) -> (A, B) {
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

/// Maps each item and its index, in order. Runs in parallel when `bytes`, the size of all items, is
/// large enough.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    bytes: usize,
    work: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let work = |(index, item)| work(index, item);
    if bytes < MIN_PARALLEL_BYTES {
        return items.iter().enumerate().map(work).collect();
    }
    in_request_pool(|| items.par_iter().enumerate().map(work).collect())
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, time::Duration};

    use super::*;

    #[test]
    fn joined_closures_run_concurrently() {
        let (sender, receiver) = channel();
        let (sent, received) = join(
            || sender.send("concurrent"),
            || receiver.recv_timeout(Duration::from_secs(60)),
        );
        assert_eq!((sent, received), (Ok(()), Ok("concurrent")));
    }

    #[test]
    fn a_thread_without_a_pool_does_the_work_itself() {
        let here = thread::current().id();
        for _ in 0..2 {
            let ids = run_in(None, || {
                let parts = (0..100).into_par_iter().map(|_| thread::current().id());
                let (parts, joined) =
                    rayon::join(|| parts.collect::<Vec<_>>(), || thread::current().id());
                let mut scoped = None;
                rayon::scope(|scope| scope.spawn(|_| scoped = Some(thread::current().id())));
                [parts, vec![joined], scoped.into_iter().collect()].concat()
            });
            assert_eq!(ids, vec![here; 102]);
        }
    }

    #[test]
    fn the_exclusive_pool_runs_one_work_at_a_time_without_blocking_others() {
        let threads = ExclusivePool::new();
        let is_in_pool = || {
            let this = thread::current();
            this.name().is_some_and(|name| name.starts_with("restore-"))
        };
        let (inner, outer) = threads.run(|| {
            let other = || threads.run(is_in_pool);
            let other = thread::scope(|scope| scope.spawn(other).join().unwrap());
            (other, is_in_pool())
        });
        assert!(!inner);
        assert!(outer);
        let panics = || threads.run(|| panic!("on purpose"));
        let panicked = thread::scope(|scope| scope.spawn(panics).join());
        assert!(panicked.is_err());
        assert!(threads.run(is_in_pool));
    }
}

//! Two reader threads in leader/follower style.
//!
//! Handing a job to another thread costs more than most requests do, so the reading
//! thread runs it itself, unless more input is waiting. The *standby* thread checks every
//! tick whether the reader is still busy. If so, the standby takes over reading, and the
//! busy thread becomes the standby when its job is done. Jobs found while there is no
//! standby go to the pool.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, Thread},
    time::Duration,
};

use crate::{mutex::lock, scheduler::root_queues::Job};

/// Interval at which the standby checks the reader. A job runs for one to two ticks
/// before the standby takes over.
const TICK: Duration = Duration::from_millis(1);
/// Number of idle ticks after which the standby sleeps until the next job.
const QUIET_TICKS: u32 = 100;

/// Result of reading.
pub enum Next {
    /// Nothing left to do.
    Done,
    /// A job to run.
    Job {
        /// The job. Must not panic.
        work: Job,
        /// More input is already waiting.
        more: bool,
    },
    /// End of input; `next` is not called again.
    End,
}

/// Calls `next` until the end, from one thread at a time. Runs the jobs it returns, some
/// of them through `pool`.
pub fn start(
    next: impl FnMut() -> Next + Send + 'static,
    pool: impl Fn(Job) + Send + Sync + 'static,
) {
    let threads = Arc::new(ReaderThreads {
        reading: Mutex::new(Some(next)),
        pool,
        job_transitions: AtomicU64::new(0),
        standby: Mutex::new(None),
        is_over: AtomicBool::new(false),
    });
    let first = threads.clone();
    let second = threads.clone();
    let second = thread::spawn(move || {
        if let Some(reading) = second.stand_by() {
            second.run(reading);
        }
    });
    // The standby is registered before the first job. It may already have registered
    // itself and be asleep.
    let thread = second.thread().clone();
    lock(&threads.standby).get_or_insert(Standby::awake(thread));
    thread::spawn(move || first.run(lock(&first.reading)));
}

struct ReaderThreads<N, P> {
    /// Held by the reading thread; `None` after the end.
    reading: Mutex<Option<N>>,
    pool: P,
    /// Counts starts and ends of jobs that the reader runs: odd while one is running.
    job_transitions: AtomicU64,
    standby: Mutex<Option<Standby>>,
    is_over: AtomicBool,
}

struct Standby {
    thread: Thread,
    asleep: bool,
}

impl Standby {
    fn awake(thread: Thread) -> Self {
        let asleep = false;
        Self { thread, asleep }
    }

    fn wake(&mut self) {
        if mem::take(&mut self.asleep) {
            self.thread.unpark();
        }
    }
}

impl<N: FnMut() -> Next, P: Fn(Job)> ReaderThreads<N, P> {
    /// Reads, then waits as a standby thread, until the end of the input.
    fn run<'a>(&'a self, mut reading: MutexGuard<'a, Option<N>>) {
        while let Some(next) = reading.as_mut() {
            match next() {
                Next::Done => {}
                Next::Job { work, more } if more || !self.begin_job() => (self.pool)(work),
                Next::Job { work, .. } => {
                    drop(reading);
                    work();
                    self.job_transitions.fetch_add(1, SeqCst);
                    let on = self.try_read().or_else(|| self.stand_by());
                    match on {
                        Some(on) => reading = on,
                        None => return,
                    }
                }
                Next::End => {
                    *reading = None;
                    self.is_over.store(true, SeqCst);
                    if let Some(standby) = lock(&self.standby).as_mut() {
                        standby.wake();
                    }
                }
            }
        }
    }

    /// Starts a job on the reading thread. Returns false if there is no standby to take
    /// over.
    fn begin_job(&self) -> bool {
        let mut standby = lock(&self.standby);
        let Some(standby) = standby.as_mut() else {
            return false;
        };
        self.job_transitions.fetch_add(1, SeqCst);
        standby.wake();
        true
    }

    fn try_read(&self) -> Option<MutexGuard<'_, Option<N>>> {
        match self.reading.try_lock() {
            Ok(reading) => Some(reading),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until this thread must read. Returns `None` at the end.
    fn stand_by(&self) -> Option<MutexGuard<'_, Option<N>>> {
        *lock(&self.standby) = Some(Standby::awake(thread::current()));
        let mut last = self.job_transitions.load(SeqCst);
        let mut quiet = 0;
        while !self.is_over.load(SeqCst) {
            thread::sleep(TICK);
            let now = self.job_transitions.load(SeqCst);
            let works = now % 2 == 1;
            quiet = if now == last && !works { quiet + 1 } else { 0 };
            // Whether the reader is busy and the standby asleep is only consistent under
            // this lock.
            let mut standby = lock(&self.standby);
            if now == last
                && works
                && let Some(reading) = self.try_read()
            {
                *standby = None;
                return Some(reading);
            }
            last = now;
            let is_quiet = quiet >= QUIET_TICKS && self.job_transitions.load(SeqCst) == now;
            if is_quiet
                && !self.is_over.load(SeqCst)
                && let Some(this) = standby.as_mut()
            {
                this.asleep = true;
                drop(standby);
                self.sleep();
                quiet = 0;
            }
        }
        None
    }

    /// Sleeps until woken.
    fn sleep(&self) {
        let is_asleep = || {
            lock(&self.standby)
                .as_ref()
                .is_some_and(|standby| standby.asleep)
        };
        while is_asleep() {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        thread::ThreadId,
    };

    use super::*;

    /// Much longer than [`TICK`].
    const LONG: Duration = Duration::from_secs(30);

    /// Starts reader threads. Returns the sender of their input, the ids of the threads
    /// that read it, and a notification for each job sent to the pool.
    fn threads() -> (Sender<Next>, Receiver<ThreadId>, Receiver<()>) {
        let (send, frames) = channel::<Next>();
        let (reads, read) = channel();
        let (gives, given) = channel();
        start(
            move || {
                let next = frames.recv().unwrap_or(Next::End);
                let _ = reads.send(thread::current().id());
                next
            },
            move |work| {
                let _ = gives.send(());
                thread::spawn(work);
            },
        );
        (send, read, given)
    }

    /// A job that reports its thread and then waits until it is released.
    fn work(more: bool) -> (Next, Receiver<ThreadId>, Sender<()>) {
        let (report, received) = channel();
        let (go, gone) = channel();
        let work = Box::new(move || {
            let _ = report.send(thread::current().id());
            let _ = gone.recv_timeout(LONG);
        });
        (Next::Job { work, more }, received, go)
    }

    #[test]
    fn the_reader_runs_jobs_and_the_standby_takes_over() {
        let (send, read, given) = threads();
        let (first, received, go) = work(false);
        send.send(first).unwrap();
        let worker = read.recv_timeout(LONG).unwrap();
        assert_eq!(received.recv_timeout(LONG).unwrap(), worker);
        // The job is still running.
        send.send(Next::Done).unwrap();
        let other = read.recv_timeout(LONG).unwrap();
        assert_ne!(other, worker);
        // No standby is left.
        let (second, received, _second) = work(false);
        send.send(second).unwrap();
        assert_eq!(read.recv_timeout(LONG).unwrap(), other);
        given.recv_timeout(LONG).unwrap();
        assert_ne!(received.recv_timeout(LONG).unwrap(), other);
        // The first thread returns and becomes the standby.
        drop(go);
        for _ in 0..1000 {
            let (third, received, go) = work(false);
            drop(go);
            send.send(third).unwrap();
            let reader = read.recv_timeout(LONG).unwrap();
            if received.recv_timeout(LONG).unwrap() == reader {
                return;
            }
            thread::sleep(TICK);
        }
        panic!("no reader runs jobs any more");
    }

    #[test]
    fn a_job_with_more_input_waiting_runs_in_the_pool() {
        let (send, read, given) = threads();
        let (first, received, _go) = work(true);
        send.send(first).unwrap();
        given.recv_timeout(LONG).unwrap();
        assert_ne!(received.recv_timeout(LONG), read.recv_timeout(LONG));
    }

    #[test]
    fn a_sleeping_standby_wakes_for_jobs_and_for_the_end() {
        let (send, read, _given) = threads();
        let asleep = TICK * (QUIET_TICKS * 3);
        for _ in 0..2 {
            thread::sleep(asleep);
            let (slow, received, _go) = work(false);
            send.send(slow).unwrap();
            let worker = read.recv_timeout(LONG).unwrap();
            assert_eq!(received.recv_timeout(LONG).unwrap(), worker);
            send.send(Next::Done).unwrap();
            assert_ne!(read.recv_timeout(LONG).unwrap(), worker);
        }
        thread::sleep(asleep);
        drop(send);
        read.recv_timeout(LONG).unwrap();
        // Both threads have ended and dropped their input.
        assert!(read.recv_timeout(LONG).is_err());
    }
}

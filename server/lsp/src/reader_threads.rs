//! Two threads take turns at reading, so that a small request needs no third one.
//!
//! Handing work to another thread costs more than most requests do. So whoever
//! reads does the work that he finds himself, unless more waits to be read. The
//! other thread, the *standby*, looks every millisecond whether he is still at it; if
//! so, the standby reads on, and who worked is the next standby. Job that is found
//! while there is no standby is the pool's.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, Thread},
    time::Duration,
};

use crate::{scheduler::root_queues::Job, sync::lock};

/// Job goes on for one to two of these before the standby reads.
const TICK: Duration = Duration::from_millis(1);
/// After so many ticks without work the standby sleeps until there is some.
const QUIET_TICKS: u32 = 100;

/// What was read.
pub enum Next {
    /// Nothing that is left to do.
    Done,
    /// Something to do.
    Job {
        /// What is to be done; it does not panic.
        work: Job,
        /// Something waits to be read.
        more: bool,
    },
    /// The end; `next` is not called again.
    End,
}

/// Calls `next` until the end, from one thread at a time, and does what it finds,
/// some of it by means of `pool`.
pub fn start(
    next: impl FnMut() -> Next + Send + 'static,
    pool: impl Fn(Job) + Send + Sync + 'static,
) {
    let threads = Arc::new(ReaderThreads {
        reading: Mutex::new(Some(next)),
        pool,
        turns: AtomicU64::new(0),
        standby: Mutex::new(None),
        over: AtomicBool::new(false),
    });
    let first = threads.clone();
    let second = threads.clone();
    let second = thread::spawn(move || {
        if let Some(reading) = second.stand_by() {
            second.run(reading);
        }
    });
    // There is a standby from the first work on. It may have come itself, and sleep.
    let thread = second.thread().clone();
    lock(&threads.standby).get_or_insert(Standby::awake(thread));
    thread::spawn(move || first.run(lock(&first.reading)));
}

struct ReaderThreads<N, P> {
    /// Belongs to who reads; `None` after the end.
    reading: Mutex<Option<N>>,
    pool: P,
    /// Counts the beginnings and the ends of what threads do themselves: odd
    /// while one is at it.
    turns: AtomicU64,
    standby: Mutex<Option<Standby>>,
    over: AtomicBool,
}

struct Standby {
    thread: Thread,
    /// Until there is work.
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
    /// Reads, and stands by, until the end.
    fn run<'a>(&'a self, mut reading: MutexGuard<'a, Option<N>>) {
        while let Some(next) = reading.as_mut() {
            match next() {
                Next::Done => {}
                Next::Job { work, more } if more || !self.begin_job() => (self.pool)(work),
                Next::Job { work, .. } => {
                    drop(reading);
                    work();
                    self.turns.fetch_add(1, SeqCst);
                    let on = self.try_read().or_else(|| self.stand_by());
                    match on {
                        Some(on) => reading = on,
                        None => return,
                    }
                }
                Next::End => {
                    *reading = None;
                    self.over.store(true, SeqCst);
                    if let Some(standby) = lock(&self.standby).as_mut() {
                        standby.wake();
                    }
                }
            }
        }
    }

    /// Begins what a reader does himself; false when nobody would read on.
    fn begin_job(&self) -> bool {
        let mut standby = lock(&self.standby);
        let Some(standby) = standby.as_mut() else {
            return false;
        };
        self.turns.fetch_add(1, SeqCst);
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

    /// Waits until this thread has to read; `None` after the end.
    fn stand_by(&self) -> Option<MutexGuard<'_, Option<N>>> {
        *lock(&self.standby) = Some(Standby::awake(thread::current()));
        let mut last = self.turns.load(SeqCst);
        let mut quiet = 0;
        while !self.over.load(SeqCst) {
            thread::sleep(TICK);
            let now = self.turns.load(SeqCst);
            let works = now % 2 == 1;
            quiet = if now == last && !works { quiet + 1 } else { 0 };
            // Who is registered, works and sleeps is known under this lock only.
            let mut standby = lock(&self.standby);
            if now == last
                && works
                && let Some(reading) = self.try_read()
            {
                *standby = None;
                return Some(reading);
            }
            last = now;
            let is_quiet = quiet >= QUIET_TICKS && self.turns.load(SeqCst) == now;
            if is_quiet
                && !self.over.load(SeqCst)
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

    /// Sleeps until somebody wakes the standby.
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

    /// Long beside [`TICK`].
    const LONG: Duration = Duration::from_secs(30);

    /// ReaderThreads of what is sent, the threads they read in, and what the pool got.
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

    /// Job that tells its thread, and then waits to be let go.
    fn work(more: bool) -> (Next, Receiver<ThreadId>, Sender<()>) {
        let (tell, told) = channel();
        let (go, gone) = channel();
        let work = Box::new(move || {
            let _ = tell.send(thread::current().id());
            let _ = gone.recv_timeout(LONG);
        });
        (Next::Job { work, more }, told, go)
    }

    #[test]
    fn who_reads_works_and_the_deputy_reads_on() {
        let (send, read, given) = threads();
        let (first, told, go) = work(false);
        send.send(first).unwrap();
        let worker = read.recv_timeout(LONG).unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap(), worker);
        // It is still at it.
        send.send(Next::Done).unwrap();
        let other = read.recv_timeout(LONG).unwrap();
        assert_ne!(other, worker);
        // There is no standby now.
        let (second, told, _second) = work(false);
        send.send(second).unwrap();
        assert_eq!(read.recv_timeout(LONG).unwrap(), other);
        given.recv_timeout(LONG).unwrap();
        assert_ne!(told.recv_timeout(LONG).unwrap(), other);
        // The first one comes back, and is the standby.
        drop(go);
        for _ in 0..1000 {
            let (third, told, go) = work(false);
            drop(go);
            send.send(third).unwrap();
            let reader = read.recv_timeout(LONG).unwrap();
            if told.recv_timeout(LONG).unwrap() == reader {
                return;
            }
            thread::sleep(TICK);
        }
        panic!("no reader works any more");
    }

    #[test]
    fn what_has_more_behind_it_is_the_pools() {
        let (send, read, given) = threads();
        let (first, told, _go) = work(true);
        send.send(first).unwrap();
        given.recv_timeout(LONG).unwrap();
        assert_ne!(told.recv_timeout(LONG), read.recv_timeout(LONG));
    }

    #[test]
    fn a_deputy_that_fell_asleep_wakes_for_work_and_for_the_end() {
        let (send, read, _given) = threads();
        let asleep = TICK * (QUIET_TICKS * 3);
        for _ in 0..2 {
            thread::sleep(asleep);
            let (slow, told, _go) = work(false);
            send.send(slow).unwrap();
            let worker = read.recv_timeout(LONG).unwrap();
            assert_eq!(told.recv_timeout(LONG).unwrap(), worker);
            send.send(Next::Done).unwrap();
            assert_ne!(read.recv_timeout(LONG).unwrap(), worker);
        }
        thread::sleep(asleep);
        drop(send);
        read.recv_timeout(LONG).unwrap();
        // Both threads end: nobody holds what they read with.
        assert!(read.recv_timeout(LONG).is_err());
    }
}

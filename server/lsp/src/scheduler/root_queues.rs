//! One queue per workspace root: jobs that change the same root run one at a time.
//!
//! A job names the roots it changes and enters all of their queues at once, in arrival
//! order. It starts when it is at the head of each. Because all entries are made
//! together, two jobs that share several roots have the same order in every queue, so
//! there are no deadlocks. A queue is not a thread: waiting costs nothing, and jobs run
//! in the pool.
//!
//! Idle work (repacking, saving caches) only enters an empty queue, and is cancelled when
//! another job arrives.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
};

use sightline_workspace::cancel::Cancel;

/// A job to run on any thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// Identifies a queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// The queues of all roots.
#[derive(Default)]
pub struct RootQueues {
    next: u64,
    queues: HashMap<PathBuf, VecDeque<Ticket>>,
    entries: HashMap<Ticket, Entry>,
}

struct Entry {
    roots: Vec<PathBuf>,
    /// Must not start yet.
    held: bool,
    /// `None` while the job runs.
    work: Option<Job>,
    /// Set for idle work; raised when another job arrives.
    idle_cancel: Option<Cancel>,
}

impl RootQueues {
    /// Enters the queues of `roots`. The job does not start while `held`.
    pub fn enter(&mut self, roots: Vec<PathBuf>, held: bool) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        for root in &roots {
            let queue = self.queues.entry(root.clone()).or_default();
            let before = queue.iter().filter_map(|before| self.entries.get(before));
            for idle in before.filter_map(|place| place.idle_cancel.as_ref()) {
                idle.cancel();
            }
            // A root may be named twice.
            if queue.back() != Some(&ticket) {
                queue.push_back(ticket);
            }
        }
        let place = Entry {
            roots,
            held,
            work: None,
            idle_cancel: None,
        };
        self.entries.insert(ticket, place);
        ticket
    }

    /// Enters the queue of `root` for idle work. Returns `None` if the queue is not
    /// empty.
    pub fn enter_idle(&mut self, root: &Path, idle_cancel: Cancel) -> Option<Ticket> {
        if self.queues.contains_key(root) {
            return None;
        }
        let ticket = self.enter(vec![root.to_path_buf()], false);
        self.entries.get_mut(&ticket)?.idle_cancel = Some(idle_cancel);
        Some(ticket)
    }

    /// Sets the job of an entry. Returns it if it can start now.
    #[must_use]
    pub fn set_work(&mut self, ticket: Ticket, work: Job) -> Option<Job> {
        self.entries.get_mut(&ticket)?.work = Some(work);
        self.startable(ticket)
    }

    /// Lets a held entry start. Returns its job if it can start now.
    #[must_use]
    pub fn release(&mut self, ticket: Ticket) -> Option<Job> {
        self.entries.get_mut(&ticket)?.held = false;
        self.startable(ticket)
    }

    /// Leaves the queues. Returns the jobs that can start now.
    #[must_use]
    pub fn leave(&mut self, ticket: Ticket) -> Vec<Job> {
        let Some(place) = self.entries.remove(&ticket) else {
            return Vec::new();
        };
        let mut heads = Vec::new();
        for root in &place.roots {
            let Some(queue) = self.queues.get_mut(root) else {
                continue;
            };
            queue.retain(|other| *other != ticket);
            match queue.front() {
                Some(head) => heads.push(*head),
                None => drop(self.queues.remove(root)),
            }
        }
        let started = heads.into_iter().filter_map(|head| self.startable(head));
        started.collect()
    }

    /// Cancels all idle work.
    pub fn stop_idle(&self) {
        for idle in self.entries.values().filter_map(|p| p.idle_cancel.as_ref()) {
            idle.cancel();
        }
    }

    fn startable(&mut self, ticket: Ticket) -> Option<Job> {
        let place = self.entries.get_mut(&ticket)?;
        let queues = &self.queues;
        let is_first = |root| queues.get(root).and_then(VecDeque::front) == Some(&ticket);
        if place.held || !place.roots.iter().all(is_first) {
            return None;
        }
        place.work.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Queues whose jobs record their names.
    #[derive(Default)]
    struct Noted {
        queues: RootQueues,
        started: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Noted {
        fn enter(&mut self, name: &'static str, roots: &[&str], held: bool) -> Ticket {
            let roots = roots.iter().map(PathBuf::from).collect();
            let ticket = self.queues.enter(roots, held);
            let started = self.started.clone();
            let work = self
                .queues
                .set_work(ticket, Box::new(move || started.lock().unwrap().push(name)));
            work.into_iter().for_each(|work| work());
            ticket
        }

        fn leave(&mut self, ticket: Ticket) {
            let works = self.queues.leave(ticket);
            works.into_iter().for_each(|work| work());
        }

        fn started(&self) -> Vec<&'static str> {
            self.started.lock().unwrap().clone()
        }
    }

    #[test]
    fn one_root_is_changed_by_one_job_at_a_time_in_order_of_arrival() {
        let mut noted = Noted::default();
        let first = noted.enter("first", &["a"], false);
        let second = noted.enter("second", &["a"], false);
        noted.enter("third", &["a"], false);
        assert_eq!(noted.started(), ["first"]);
        noted.leave(first);
        assert_eq!(noted.started(), ["first", "second"]);
        noted.leave(second);
        assert_eq!(noted.started(), ["first", "second", "third"]);
    }

    #[test]
    fn a_job_of_two_roots_waits_for_both_and_others_do_not_wait() {
        let mut noted = Noted::default();
        let a = noted.enter("a", &["a"], false);
        let b = noted.enter("b", &["b"], false);
        let both = noted.enter("both", &["b", "a", "b"], false);
        noted.enter("after", &["a"], false);
        assert_eq!(noted.started(), ["a", "b"]);
        noted.leave(b);
        assert_eq!(noted.started(), ["a", "b"]);
        noted.leave(a);
        assert_eq!(noted.started(), ["a", "b", "both"]);
        noted.leave(both);
        assert_eq!(noted.started(), ["a", "b", "both", "after"]);
    }

    #[test]
    fn a_held_entry_keeps_its_place_and_starts_when_released() {
        let mut noted = Noted::default();
        let held = noted.enter("held", &["a"], true);
        noted.enter("after", &["a"], false);
        assert!(noted.started().is_empty());
        let work = noted.queues.release(held);
        work.into_iter().for_each(|work| work());
        assert_eq!(noted.started(), ["held"]);
        noted.leave(held);
        assert_eq!(noted.started(), ["held", "after"]);
        assert!(noted.queues.entries.len() == 1);
    }

    #[test]
    fn idle_work_enters_empty_queues_only_and_is_cancelled() {
        let mut noted = Noted::default();
        let cancel = Cancel::default();
        let a = Path::new("a");
        let job = noted.enter("job", &["a"], false);
        assert!(noted.queues.enter_idle(a, cancel.clone()).is_none());
        noted.leave(job);
        assert!(noted.queues.enter_idle(a, cancel.clone()).is_some());
        assert!(!cancel.is_cancelled());
        noted.enter("next", &["a"], false);
        assert!(cancel.is_cancelled());
        assert_eq!(noted.started(), ["job"]);
    }
}

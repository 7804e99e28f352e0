//! Which jobs run at the same time.
//!
//! A job names the keys it uses: tasks and workspace roots. [`KeyedQueue`] starts it once
//! every earlier job that conflicts with it has ended. A queue is not a thread: waiting
//! costs nothing, and jobs run in the thread pool. The main loop owns the queue.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use sightline_engine::jobs::Access;

/// Identifies a job in a queue.
pub type JobId = u64;

/// Jobs that wait for earlier jobs with the same keys.
pub struct KeyedQueue<K, J> {
    next: JobId,
    /// The jobs of each key, in arrival order.
    queues: HashMap<K, VecDeque<(JobId, Access)>>,
    jobs: HashMap<JobId, Entry<K, J>>,
}

struct Entry<K, J> {
    keys: Vec<(K, Access)>,
    /// `None` once the job has started.
    waiting: Option<J>,
}

impl<K, J> Default for KeyedQueue<K, J> {
    fn default() -> Self {
        Self {
            next: 0,
            queues: HashMap::new(),
            jobs: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, J> KeyedQueue<K, J> {
    /// Adds a job. Returns its id, and the job itself if it can start now.
    pub fn push(&mut self, mut keys: Vec<(K, Access)>, job: J) -> (JobId, Option<J>) {
        let id = self.next;
        self.next += 1;
        keys.retain(|(key, access)| {
            let queue = self.queues.entry(key.clone()).or_default();
            let is_new = queue.back().is_none_or(|(last, _)| *last != id);
            if is_new {
                queue.push_back((id, *access));
            }
            is_new
        });
        let waiting = Some(job);
        self.jobs.insert(id, Entry { keys, waiting });
        (id, self.start(id))
    }

    /// Removes a job that has ended. Returns the jobs that can start now.
    #[must_use]
    pub fn done(&mut self, id: JobId) -> Vec<(JobId, J)> {
        let Some(entry) = self.jobs.remove(&id) else {
            return Vec::new();
        };
        let mut candidates = Vec::new();
        for (key, access) in &entry.keys {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            queue.retain(|(other, _)| *other != id);
            if queue.is_empty() {
                self.queues.remove(key);
                continue;
            }
            candidates.extend(unblocked(queue, *access));
        }
        candidates
            .into_iter()
            .filter_map(|id| Some((id, self.start(id)?)))
            .collect()
    }

    /// Returns whether no job uses a key or waits for it.
    pub fn is_free(&self, key: &K) -> bool {
        !self.queues.contains_key(key)
    }

    /// Returns whether all jobs have ended.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn start(&mut self, id: JobId) -> Option<J> {
        let entry = self.jobs.get_mut(&id)?;
        let is_blocked = |(key, access): &(K, Access)| {
            let queue = self.queues.get(key).into_iter().flatten();
            let mut earlier = queue.take_while(|(other, _)| *other != id);
            earlier.any(|(_, earlier)| earlier.blocks(*access))
        };
        if entry.keys.iter().any(is_blocked) {
            return None;
        }
        entry.waiting.take()
    }
}

/// Returns the jobs of a queue that may start after one with access `ended` has ended.
fn unblocked(queue: &VecDeque<(JobId, Access)>, ended: Access) -> Vec<JobId> {
    let first_exclusive = queue
        .iter()
        .position(|(_, access)| *access == Access::Exclusive)
        .unwrap_or(queue.len());
    queue
        .iter()
        .take(first_exclusive + 1)
        // Jobs that share the key did not wait for another that shares it.
        .filter(|(_, access)| ended == Access::Exclusive || *access != Access::Shared)
        .map(|(id, _)| *id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Access::*, *};

    /// A queue of named jobs.
    #[derive(Default)]
    struct Jobs {
        queue: KeyedQueue<&'static str, &'static str>,
        ids: HashMap<&'static str, JobId>,
        started: Vec<&'static str>,
    }

    impl Jobs {
        fn push(&mut self, name: &'static str, keys: &[(&'static str, Access)]) {
            let (id, started) = self.queue.push(keys.to_vec(), name);
            self.ids.insert(name, id);
            self.started.extend(started);
        }

        fn done(&mut self, name: &str) {
            let started = self.queue.done(self.ids[name]);
            self.started
                .extend(started.into_iter().map(|(_, name)| name));
        }
    }

    #[test]
    fn jobs_with_a_common_key_run_one_at_a_time_in_arrival_order() {
        let mut jobs = Jobs::default();
        for name in ["first", "second", "third"] {
            jobs.push(name, &[("a", Exclusive)]);
        }
        assert_eq!(jobs.started, ["first"]);
        jobs.done("first");
        assert_eq!(jobs.started, ["first", "second"]);
        jobs.done("second");
        jobs.done("third");
        assert_eq!(jobs.started, ["first", "second", "third"]);
        assert!(jobs.queue.is_empty() && jobs.queue.is_free(&"a"));
    }

    #[test]
    fn a_job_with_two_keys_waits_for_both_and_others_do_not_wait() {
        let mut jobs = Jobs::default();
        jobs.push("a", &[("a", Exclusive)]);
        jobs.push("b", &[("b", Exclusive)]);
        jobs.push(
            "both",
            &[("b", Exclusive), ("a", Exclusive), ("a", Exclusive)],
        );
        jobs.push("after", &[("a", Exclusive)]);
        jobs.push("free", &[]);
        assert_eq!(jobs.started, ["a", "b", "free"]);
        jobs.done("b");
        assert_eq!(jobs.started.len(), 3);
        jobs.done("a");
        assert_eq!(jobs.started[3..], ["both"]);
        jobs.done("both");
        assert_eq!(jobs.started[4..], ["after"]);
    }

    #[test]
    fn shared_jobs_run_together_between_exclusive_ones() {
        let mut jobs = Jobs::default();
        jobs.push("a", &[("all", Shared), ("a", Exclusive)]);
        jobs.push("b", &[("all", Shared), ("b", Exclusive)]);
        jobs.push("list", &[("all", Exclusive)]);
        jobs.push("c", &[("all", Shared), ("c", Exclusive)]);
        jobs.push("d", &[("all", Shared), ("c", Exclusive)]);
        jobs.push("e", &[("all", Shared), ("e", Exclusive)]);
        assert_eq!(jobs.started, ["a", "b"]);
        jobs.done("b");
        assert_eq!(jobs.started.len(), 2);
        jobs.done("a");
        assert_eq!(jobs.started[2..], ["list"]);
        jobs.done("list");
        assert_eq!(jobs.started[3..], ["c", "e"]);
        jobs.done("c");
        assert_eq!(jobs.started[5..], ["d"]);
    }

    #[test]
    fn later_jobs_do_not_wait_for_one_that_only_comes_after() {
        let mut jobs = Jobs::default();
        jobs.push("root", &[("root", Exclusive)]);
        jobs.push("task", &[("t", Exclusive)]);
        jobs.push("both", &[("root", Exclusive), ("t", After)]);
        jobs.push("next", &[("t", Exclusive)]);
        assert_eq!(jobs.started, ["root", "task"]);
        jobs.done("task");
        assert_eq!(jobs.started[2..], ["next"]);
        jobs.done("root");
        assert_eq!(jobs.started[3..], ["both"]);
    }
}

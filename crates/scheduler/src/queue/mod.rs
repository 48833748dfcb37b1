//! Requests that wait for admission, in the order of the policy.

mod fcfs;
mod priority;

use stepline_config::SchedulingPolicy;

use crate::ids::RequestSlot;
use crate::request_table::RequestTable;

use fcfs::FcfsQueue;
use priority::{PriorityKey, PriorityQueue};

/// The waiting queue. spec: scheduler 7.
#[derive(Debug)]
pub(crate) enum WaitingQueue {
    Fcfs(FcfsQueue),
    Priority(PriorityQueue),
}

impl WaitingQueue {
    pub(crate) fn new(policy: SchedulingPolicy) -> Self {
        match policy {
            SchedulingPolicy::Fcfs => Self::Fcfs(FcfsQueue::default()),
            SchedulingPolicy::Priority => Self::Priority(PriorityQueue::default()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fcfs(queue) => queue.len(),
            Self::Priority(queue) => queue.len(),
        }
    }

    pub(crate) fn front(&self) -> Option<RequestSlot> {
        match self {
            Self::Fcfs(queue) => queue.front(),
            Self::Priority(queue) => queue.front(),
        }
    }

    pub(crate) fn push_back(&mut self, slot: RequestSlot, requests: &RequestTable) {
        match self {
            Self::Fcfs(queue) => queue.push_back(slot),
            Self::Priority(queue) => queue.insert(PriorityKey::of(slot, requests), slot),
        }
    }

    /// Under the priority policy this is an ordinary insert: a preempted request goes where its key says.
    pub(crate) fn push_front(&mut self, slot: RequestSlot, requests: &RequestTable) {
        match self {
            Self::Fcfs(queue) => queue.push_front(slot),
            Self::Priority(queue) => queue.insert(PriorityKey::of(slot, requests), slot),
        }
    }

    /// Takes out a request that is in the queue.
    pub(crate) fn remove(&mut self, slot: RequestSlot, requests: &RequestTable) {
        match self {
            Self::Fcfs(queue) => queue.remove(slot),
            Self::Priority(queue) => queue.remove(&PriorityKey::of(slot, requests)),
        }
    }

    /// The queue in the order in which requests would be tried.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = RequestSlot> + '_> {
        match self {
            Self::Fcfs(queue) => Box::new(queue.iter()),
            Self::Priority(queue) => Box::new(queue.iter()),
        }
    }
}

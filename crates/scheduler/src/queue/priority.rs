//! By priority, then by arrival, then by id.

use std::collections::BTreeMap;

use crate::ids::{RequestId, RequestSlot};
use crate::request_table::RequestTable;
use crate::time::Nanos;

/// A total order for distinct ids, so that the order of service depends on nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PriorityKey {
    priority: i32,
    arrival_time: Nanos,
    /// Compared byte by byte, which for UTF-8 is by code point.
    id: RequestId,
}

impl PriorityKey {
    pub(crate) fn of(slot: RequestSlot, requests: &RequestTable) -> Self {
        let request = requests.request(slot);
        Self { priority: request.priority, arrival_time: request.arrival_time, id: request.id.clone() }
    }
}

/// An ordered map: any request enters or leaves in O(log n).
#[derive(Debug, Default)]
pub(crate) struct PriorityQueue {
    slots: BTreeMap<PriorityKey, RequestSlot>,
}

impl PriorityQueue {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn front(&self) -> Option<RequestSlot> {
        self.slots.first_key_value().map(|(_, slot)| *slot)
    }

    pub(crate) fn insert(&mut self, key: PriorityKey, slot: RequestSlot) {
        self.slots.insert(key, slot);
    }

    pub(crate) fn remove(&mut self, key: &PriorityKey) {
        self.slots.remove(key);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = RequestSlot> + '_ {
        self.slots.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{PriorityKey, PriorityQueue};
    use crate::ids::RequestSlot;
    use crate::time::Nanos;

    /// spec: scheduler 7, example 1.
    #[test]
    fn lower_priority_values_earlier_arrivals_and_smaller_ids_go_first() {
        let mut queue = PriorityQueue::default();
        for (slot, (id, priority, arrival)) in [("z", 1, 3), ("y", 1, 2), ("x", 0, 9), ("w", 1, 2)].iter().enumerate() {
            let key = PriorityKey { priority: *priority, arrival_time: Nanos(*arrival), id: (*id).into() };
            queue.insert(key, RequestSlot(u32::try_from(slot).expect("small")));
        }
        let order: Vec<u32> = queue.iter().map(|slot| slot.0).collect();
        assert_eq!(order, [2, 3, 1, 0], "x, w, y, z");
    }
}

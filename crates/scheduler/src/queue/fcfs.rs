//! First come, first served.

use crate::ids::RequestSlot;

/// The end of the list in both directions.
const NONE: RequestSlot = RequestSlot(u32::MAX);

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: RequestSlot,
    next: RequestSlot,
}

/// A list linked through a table by slot, so that any request leaves in O(1).
#[derive(Debug)]
pub(crate) struct FcfsQueue {
    links: Vec<Link>,
    front: RequestSlot,
    back: RequestSlot,
    len: usize,
}

impl Default for FcfsQueue {
    fn default() -> Self {
        Self { links: Vec::new(), front: NONE, back: NONE, len: 0 }
    }
}

impl FcfsQueue {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn front(&self) -> Option<RequestSlot> {
        (self.front != NONE).then_some(self.front)
    }

    pub(crate) fn push_back(&mut self, slot: RequestSlot) {
        self.link(self.back, slot, NONE);
    }

    pub(crate) fn push_front(&mut self, slot: RequestSlot) {
        self.link(NONE, slot, self.front);
    }

    pub(crate) fn remove(&mut self, slot: RequestSlot) {
        let Link { prev, next } = self.links[slot.index()];
        *self.next_of(prev) = next;
        *self.prev_of(next) = prev;
        self.len -= 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = RequestSlot> + '_ {
        std::iter::successors(self.front(), |slot| {
            let next = self.links[slot.index()].next;
            (next != NONE).then_some(next)
        })
    }

    fn link(&mut self, prev: RequestSlot, slot: RequestSlot, next: RequestSlot) {
        if self.links.len() <= slot.index() {
            self.links.resize(slot.index() + 1, Link { prev: NONE, next: NONE });
        }
        self.links[slot.index()] = Link { prev, next };
        *self.next_of(prev) = slot;
        *self.prev_of(next) = slot;
        self.len += 1;
    }

    fn next_of(&mut self, slot: RequestSlot) -> &mut RequestSlot {
        if slot == NONE { &mut self.front } else { &mut self.links[slot.index()].next }
    }

    fn prev_of(&mut self, slot: RequestSlot) -> &mut RequestSlot {
        if slot == NONE { &mut self.back } else { &mut self.links[slot.index()].prev }
    }
}

#[cfg(test)]
mod tests {
    use super::FcfsQueue;
    use crate::ids::RequestSlot;

    fn order(queue: &FcfsQueue) -> Vec<u32> {
        queue.iter().map(|slot| slot.0).collect()
    }

    #[test]
    fn requests_are_served_in_order_of_arrival_and_the_preempted_first() {
        let mut queue = FcfsQueue::default();
        for slot in [4, 0, 2] {
            queue.push_back(RequestSlot(slot));
        }
        queue.push_front(RequestSlot(7));
        assert_eq!(order(&queue), [7, 4, 0, 2]);
        assert_eq!(queue.front(), Some(RequestSlot(7)));
    }

    #[test]
    fn a_request_leaves_from_anywhere() {
        for (leaving, rest) in [(4, [0, 2]), (0, [4, 2]), (2, [4, 0])] {
            let mut queue = FcfsQueue::default();
            for slot in [4, 0, 2] {
                queue.push_back(RequestSlot(slot));
            }
            queue.remove(RequestSlot(leaving));
            assert_eq!(order(&queue), rest);
            queue.push_back(RequestSlot(leaving));
            assert_eq!(queue.iter().last(), Some(RequestSlot(leaving)));
            assert_eq!(queue.len(), 3);
        }
    }

    #[test]
    fn the_last_request_leaves_an_empty_queue() {
        let mut queue = FcfsQueue::default();
        queue.push_back(RequestSlot(1));
        queue.remove(RequestSlot(1));
        assert_eq!((queue.front(), queue.len()), (None, 0));
        queue.push_front(RequestSlot(3));
        assert_eq!(order(&queue), [3]);
    }
}

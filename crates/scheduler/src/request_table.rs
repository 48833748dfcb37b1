//! All live requests: dense, with a text id looked up once.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::ids::{RequestHandle, RequestRef, RequestSlot};
use crate::request::{Request, RequestState};

/// Slots of live requests, hot counters apart from the rest.
///
/// A slot outlives its request until the end has been reported: [`retire`](Self::retire) makes the id unknown,
/// [`release`](Self::release) gives the slot to the next request.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    states: Vec<RequestState>,
    requests: Vec<Request>,
    by_id: HashTable<RequestSlot>,
    free: Vec<RequestSlot>,
}

impl RequestTable {
    /// Requests that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn find(&self, id: &str) -> Option<RequestSlot> {
        self.by_id.find(hash_id(id), |slot| self.requests[slot.index()].id.as_str() == id).copied()
    }

    /// Returns the slot that `handle` names, if its request still has it.
    pub(crate) fn resolve(&self, handle: RequestHandle) -> Option<RequestSlot> {
        let state = self.states.get(handle.slot.index())?;
        (state.generation == handle.generation).then_some(handle.slot)
    }

    pub(crate) fn handle(&self, slot: RequestSlot) -> RequestHandle {
        RequestHandle { slot, generation: self[slot].generation }
    }

    pub(crate) fn reference(&self, slot: RequestSlot) -> RequestRef {
        RequestRef { handle: self.handle(slot), id: self.request(slot).id.clone() }
    }

    pub(crate) fn request(&self, slot: RequestSlot) -> &Request {
        &self.requests[slot.index()]
    }

    pub(crate) fn both_mut(&mut self, slot: RequestSlot) -> (&mut RequestState, &mut Request) {
        (&mut self.states[slot.index()], &mut self.requests[slot.index()])
    }

    pub(crate) fn request_mut(&mut self, slot: RequestSlot) -> &mut Request {
        &mut self.requests[slot.index()]
    }

    /// Takes in a request whose id is unknown. The state's generation is set here.
    pub(crate) fn insert(&mut self, mut state: RequestState, request: Request) -> RequestSlot {
        let hash = hash_id(request.id.as_str());
        let slot = if let Some(slot) = self.free.pop() {
            state.generation = self[slot].generation; // counted up when the slot was released
            self.states[slot.index()] = state;
            self.requests[slot.index()] = request;
            slot
        } else {
            let slot = RequestSlot(u32::try_from(self.states.len()).expect("fewer than 2^32 live requests"));
            self.states.push(state);
            self.requests.push(request);
            slot
        };
        let requests = &self.requests;
        self.by_id.insert_unique(hash, slot, |other| hash_id(requests[other.index()].id.as_str()));
        slot
    }

    /// Makes an ended request unknown and drops its tokens; its handle and id stay readable.
    pub(crate) fn retire(&mut self, slot: RequestSlot) {
        let request = &mut self.requests[slot.index()];
        request.output_token_ids = Vec::new();
        request.block_hashes = stepline_kv_cache::HashChain::default();
        request.prompt_token_ids = Arc::default();
        request.lora = None;
        request.events = Vec::new();
        let hash = hash_id(request.id.as_str());
        self.by_id.find_entry(hash, |other| *other == slot).expect("a live request is known by its id").remove();
    }

    /// Gives the slot of a retired request to the next one. Handles to it find nothing from now on.
    pub(crate) fn release(&mut self, slot: RequestSlot) {
        let state = &mut self[slot];
        state.generation = state.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Live requests in order of arrival at the scheduler. O(n log n).
    pub(crate) fn in_order_of_arrival(&self) -> Vec<RequestSlot> {
        let mut slots: Vec<RequestSlot> = self.by_id.iter().copied().collect();
        slots.sort_unstable_by_key(|slot| self.request(*slot).sequence);
        slots
    }
}

impl Index<RequestSlot> for RequestTable {
    type Output = RequestState;

    fn index(&self, slot: RequestSlot) -> &RequestState {
        &self.states[slot.index()]
    }
}

impl IndexMut<RequestSlot> for RequestTable {
    fn index_mut(&mut self, slot: RequestSlot) -> &mut RequestState {
        &mut self.states[slot.index()]
    }
}

fn hash_id(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

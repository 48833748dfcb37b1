//! What happened to a request, until its next output record carries it away.

use crate::ids::RequestSlot;
use crate::output::{EngineCoreEvent, EngineCoreEventType};
use crate::scheduler::Scheduler;
use crate::time::Nanos;

impl Scheduler {
    /// Notes an event. spec: requests-and-outputs 6.
    pub(crate) fn add_event(&mut self, slot: RequestSlot, event_type: EngineCoreEventType, timestamp: Nanos) {
        let (state, request) = self.requests.both_mut(slot);
        state.has_news = true;
        request.events.push(EngineCoreEvent { event_type, timestamp });
    }
}

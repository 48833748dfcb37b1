//! The limit on adapters per step.

use crate::request::Request;

/// Whether admitting `request` would bring one adapter too many into the step. spec: scheduler 2.4.6.
pub(crate) fn is_full(request: &Request, lora_ids: &[u32], max_loras: Option<u32>) -> bool {
    let (Some(id), Some(max_loras)) = (request.lora_id(), max_loras) else { return false };
    lora_ids.len() >= max_loras as usize && !lora_ids.contains(&id)
}

/// Adds the request's adapter to the adapters of the step.
pub(crate) fn note(request: &Request, lora_ids: &mut Vec<u32>) {
    if let Some(id) = request.lora_id().filter(|id| !lora_ids.contains(id)) {
        lora_ids.push(id);
    }
}

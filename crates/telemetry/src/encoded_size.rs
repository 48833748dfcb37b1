//! An upper bound of what an event takes on the wire.
//!
//! A gRPC receiver refuses a message above 4 MiB, and nothing splits a span on the way. So both the life of a span and
//! the size of a batch are bounded by bytes, before anything is encoded.

use stepline_tracing_schema::{AttributeValue, Record};

/// The largest message that gRPC receivers take by default, bytes.
pub(crate) const GRPC_MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes of tags, lengths, number and time around an event's name and attributes.
const EVENT_OVERHEAD_BYTES: usize = 24;
/// Bytes of tags and lengths around an attribute's key and value. Five bytes for each length, the most it can take.
const ATTRIBUTE_OVERHEAD_BYTES: usize = 24;
/// The most bytes that a number takes: a varint of 64 bits.
const NUMBER_BYTES: usize = 10;
/// Bytes of a span without name, attributes and events.
pub(crate) const SPAN_OVERHEAD_BYTES: usize = 160;

/// Returns at least the number of bytes that `record` takes as an event of an OTLP message.
pub(crate) fn event_bytes(record: &impl Record) -> usize {
    let mut bytes = event_header_bytes(record.event_name());
    record.for_each_attribute(|key, value| {
        bytes += match value {
            AttributeValue::Int(_) | AttributeValue::Float(_) => number_attribute_bytes(key),
            AttributeValue::Static(text) => text_attribute_bytes(key, text),
            AttributeValue::Shared(text) => text_attribute_bytes(key, text),
        };
    });
    bytes
}

/// Returns at least the bytes of an event without attributes.
pub(crate) const fn event_header_bytes(name: &str) -> usize {
    EVENT_OVERHEAD_BYTES + name.len()
}

/// Returns at least the bytes of an attribute that is a number.
pub(crate) const fn number_attribute_bytes(key: &str) -> usize {
    ATTRIBUTE_OVERHEAD_BYTES + key.len() + NUMBER_BYTES
}

/// Returns at least the bytes of an attribute that is a text.
pub(crate) const fn text_attribute_bytes(key: &str, text: &str) -> usize {
    ATTRIBUTE_OVERHEAD_BYTES + key.len() + text.len()
}

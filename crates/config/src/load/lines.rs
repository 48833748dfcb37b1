//! Which line a byte stands in.

/// Where the lines of a text begin, found once, so that each of many keys is placed without reading the text again.
#[derive(Debug)]
pub(super) struct LineIndex {
    /// The byte after every line break, in order.
    later_starts: Vec<usize>,
}

impl LineIndex {
    pub(super) fn new(text: &str) -> Self {
        let later_starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(idx, _)| idx + 1);
        Self { later_starts: later_starts.collect() }
    }

    /// The line, counted from 1, of a byte of the text; the last line for a byte beyond it.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        self.later_starts.partition_point(|start| *start <= byte) + 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_byte_stands_in_the_line_after_as_many_breaks_as_precede_it(text in "[a\r\né]{0,40}") {
            let index = LineIndex::new(&text);
            for byte in 0..=text.len() {
                let breaks = text.bytes().take(byte).filter(|byte| *byte == b'\n').count();
                prop_assert_eq!(index.line_at(byte), breaks + 1);
            }
        }
    }
}

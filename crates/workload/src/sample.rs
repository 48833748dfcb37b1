//! The trace that the crate carries with it.

use crate::error::WorkloadError;
use crate::reader::WorkloadReader;

/// A real trace that is part of the program, with where it is from.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedSample {
    /// What it is called in messages and results.
    pub name: &'static str,
    /// What it holds and where it is from.
    pub origin: &'static str,
    /// Its licence.
    pub licence: &'static str,
    gzip: &'static [u8],
}

/// The first 1,500 requests (about five minutes) of the conversation service in Azure's 2023 trace.
pub const EMBEDDED_SAMPLE: EmbeddedSample = EmbeddedSample {
    name: "azure_llm_2023_conv (first 1,500 requests)",
    origin: "Azure LLM inference trace 2023, conversation service, github.com/Azure/AzurePublicDataset; \
             Patel et al., \"Splitwise\", ISCA 2024",
    licence: "CC-BY 4.0",
    gzip: include_bytes!("../data/azure_llm_2023_conv_1500.csv.gz"),
};

impl EmbeddedSample {
    /// Reads it.
    ///
    /// # Errors
    /// As [`WorkloadReader::open`]; the tests read it to its end.
    pub fn reader(&self) -> Result<WorkloadReader, WorkloadError> {
        WorkloadReader::from_reader(self.name, self.gzip)
    }
}

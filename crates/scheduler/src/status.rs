//! Where a request stands, and how it ends.

use stepline_tracing_schema::FinishStatus;

/// A request's status. spec: requests-and-outputs 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestStatus {
    /// Never scheduled.
    Waiting,
    /// Holds blocks and is considered in every step.
    Running,
    /// Lost its blocks; waits to be admitted again.
    Preempted,
    /// Ended by a stop token.
    FinishedStopped,
    /// Ended by `max_tokens` or `max_model_len`.
    FinishedLengthCapped,
    /// Ended from outside.
    FinishedAborted,
    /// Ended without having been processed.
    FinishedIgnored,
    /// Ended by a fault.
    FinishedError,
    /// Ended by the repetition detector.
    FinishedRepetition,
}

impl RequestStatus {
    /// Whether the request has ended.
    #[must_use]
    pub fn is_finished(self) -> bool {
        self > Self::Preempted
    }

    /// Returns how the request ended, or `None` if it has not. spec: requests-and-outputs 3.
    #[must_use]
    pub const fn finish_reason(self) -> Option<FinishReason> {
        match self {
            Self::Waiting | Self::Running | Self::Preempted => None,
            Self::FinishedStopped => Some(FinishReason::Stop),
            Self::FinishedLengthCapped | Self::FinishedIgnored => Some(FinishReason::Length),
            Self::FinishedAborted => Some(FinishReason::Abort),
            Self::FinishedError => Some(FinishReason::Error),
            Self::FinishedRepetition => Some(FinishReason::Repetition),
        }
    }
}

/// How a request is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalFinish {
    /// The client went away or asked for it.
    Aborted,
    /// The front end found a stop string.
    Stopped,
    /// The front end cut the request.
    LengthCapped,
    /// The front end will not process it.
    Ignored,
    /// A fault outside the scheduler.
    Error,
}

impl From<ExternalFinish> for RequestStatus {
    fn from(finish: ExternalFinish) -> Self {
        match finish {
            ExternalFinish::Aborted => Self::FinishedAborted,
            ExternalFinish::Stopped => Self::FinishedStopped,
            ExternalFinish::LengthCapped => Self::FinishedLengthCapped,
            ExternalFinish::Ignored => Self::FinishedIgnored,
            ExternalFinish::Error => Self::FinishedError,
        }
    }
}

/// Why a request ended, as clients see it. The integers are those of vLLM's wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FinishReason {
    /// A stop token or stop string.
    Stop = 0,
    /// `max_tokens` or `max_model_len`.
    Length = 1,
    /// Ended from outside.
    Abort = 2,
    /// A fault.
    Error = 3,
    /// The output repeats itself.
    Repetition = 4,
}

impl FinishReason {
    /// vLLM's text for this reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
            Self::Error => "error",
            Self::Repetition => "repetition",
        }
    }
}

/// The text that journeys carry. They know no repetition: such a request was stopped.
pub(crate) fn finish_status(status: RequestStatus) -> FinishStatus {
    match status {
        RequestStatus::FinishedLengthCapped => FinishStatus::Length,
        RequestStatus::FinishedAborted => FinishStatus::Aborted,
        RequestStatus::FinishedIgnored => FinishStatus::Ignored,
        RequestStatus::FinishedError => FinishStatus::Error,
        RequestStatus::FinishedStopped | RequestStatus::FinishedRepetition => FinishStatus::Stopped,
        RequestStatus::Waiting | RequestStatus::Running | RequestStatus::Preempted => {
            unreachable!("only requests that end have a finish status")
        }
    }
}

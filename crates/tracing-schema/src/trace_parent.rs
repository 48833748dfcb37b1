//! The W3C `traceparent` header.

/// The caller's span, as its `traceparent` header names it.
///
/// ```
/// use stepline_tracing_schema::TraceParent;
///
/// let parent: TraceParent = "00-1234567890abcdef1234567890abcdef-fedcba9876543210-01".parse()?;
/// assert_eq!(parent.span_id, 0xfedc_ba98_7654_3210);
/// assert!(parent.sampled);
/// # Ok::<(), stepline_tracing_schema::TraceParentError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// Id of the trace, not 0.
    pub trace_id: u128,
    /// Id of the caller's span, not 0.
    pub span_id: u64,
    /// Whether the caller records its span. A child of a span that is not recorded is not recorded either.
    pub sampled: bool,
}

/// Why a text is no `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceParentError {
    /// The text does not have the form of a `traceparent`.
    #[error(
        "traceparent `{header}`: {fault}; expected `00-TRACE-SPAN-FLAGS` with 32, 16 and 2 lower-case hexadecimal digits"
    )]
    Form {
        /// The text, at most its first 80 characters.
        header: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// An id that stands for no span.
    #[error("traceparent `{header}`: the {field} is all zeros, which names no span")]
    ZeroId {
        /// The text.
        header: String,
        /// `trace id` or `span id`.
        field: &'static str,
    },
}

impl TraceParent {
    /// Reads the header's value. Spaces around it are allowed.
    ///
    /// Versions above `00` are read as far as this version goes, as the specification asks.
    ///
    /// # Errors
    /// If the form is wrong, the version is the forbidden `ff`, or an id is zero. The reference then starts a root
    /// span; so should a caller.
    pub fn parse(header: &str) -> Result<Self, TraceParentError> {
        let form = |fault| TraceParentError::Form { header: header.chars().take(80).collect(), fault };
        let mut fields = header.trim_matches([' ', '\t']).splitn(5, '-');
        let mut field = |digits: usize, fault| {
            let text = fields.next().filter(|text| text.len() == digits).ok_or_else(|| form(fault))?;
            let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if !text.bytes().all(lower_hex) {
                return Err(form(fault));
            }
            // At most 32 digits were let through, so only the digits themselves could fail, and they were checked.
            u128::from_str_radix(text, 16).map_err(|_| form(fault))
        };
        let version = field(2, "the version is not 2 digits")?;
        let trace_id = field(32, "the trace id is not 32 digits")?;
        let span_id = field(16, "the span id is not 16 digits")?;
        let flags = field(2, "the flags are not 2 digits")?;
        if version == 0xff {
            return Err(form("version ff is forbidden"));
        }
        if version == 0 && fields.next().is_some() {
            return Err(form("something follows the flags"));
        }
        let zero = |field| TraceParentError::ZeroId { header: header.to_owned(), field };
        let span_id = u64::try_from(span_id).map_err(|_| form("the span id is not 16 digits"))?;
        if trace_id == 0 {
            return Err(zero("trace id"));
        }
        if span_id == 0 {
            return Err(zero("span id"));
        }
        Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

impl std::str::FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(header: &str) -> Result<Self, Self::Err> {
        Self::parse(header)
    }
}

impl std::fmt::Display for TraceParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::{TraceParent, TraceParentError};

    const VALID: &str = "00-1234567890abcdef1234567890abcdef-fedcba9876543210-01";

    #[test]
    fn a_valid_header_is_read_and_written_back() {
        let parent = TraceParent::parse(VALID).expect("the header is valid");
        assert_eq!(parent.trace_id, 0x1234_5678_90ab_cdef_1234_5678_90ab_cdef);
        assert_eq!(parent.span_id, 0xfedc_ba98_7654_3210);
        assert!(parent.sampled);
        assert_eq!(parent.to_string(), VALID);
    }

    #[test]
    fn only_the_lowest_flag_says_sampled() {
        let sampled = |flags: &str| TraceParent::parse(&VALID.replace("-01", flags)).map(|parent| parent.sampled);
        assert_eq!(sampled("-00"), Ok(false));
        assert_eq!(sampled("-02"), Ok(false));
        assert_eq!(sampled("-03"), Ok(true));
    }

    #[test]
    fn a_later_version_may_have_more_fields_and_version_00_may_not() {
        let more = format!("{VALID}-what-comes");
        assert!(TraceParent::parse(&more.replacen("00", "01", 1)).is_ok());
        assert!(TraceParent::parse(&more).is_err());
    }

    #[test]
    fn broken_headers_are_refused_with_what_is_wrong() {
        let fault = |header: &str| match TraceParent::parse(header) {
            Err(TraceParentError::Form { fault, .. }) => fault,
            other => panic!("{header}: {other:?}"),
        };
        assert_eq!(fault("garbage"), "the version is not 2 digits");
        assert_eq!(fault(""), "the version is not 2 digits");
        assert_eq!(fault(&VALID.to_uppercase()), "the trace id is not 32 digits");
        assert_eq!(fault(&VALID.replace("fedc", "+edc")), "the span id is not 16 digits");
        assert_eq!(fault(&VALID[..52]), "the flags are not 2 digits");
        assert_eq!(fault(&VALID.replacen("00", "ff", 1)), "version ff is forbidden");
        assert_eq!(fault("00-é234567890abcdef1234567890abcde-fedcba9876543210-01"), "the trace id is not 32 digits");
    }

    #[test]
    fn zero_ids_name_no_span() {
        let zero_trace = VALID.replace("1234567890abcdef1234567890abcdef", &"0".repeat(32));
        let zero_span = VALID.replace("fedcba9876543210", &"0".repeat(16));
        for (header, expected) in [(zero_trace, "trace id"), (zero_span, "span id")] {
            let Err(TraceParentError::ZeroId { field, .. }) = TraceParent::parse(&header) else {
                panic!("{header} was accepted");
            };
            assert_eq!(field, expected);
        }
    }
}

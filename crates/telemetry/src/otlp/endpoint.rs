//! Where to export to, and how.

use std::env;

use http::Uri;

use crate::error::TelemetryError;
use crate::options::OtlpProtocol;

/// Returns the protocol that the environment asks for; gRPC if it asks for none.
pub(crate) fn protocol_of_environment() -> Result<OtlpProtocol, TelemetryError> {
    // The variable of the signal wins over the general one.
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
        .into_iter()
        .find_map(|variable| {
            let value = env::var_os(variable).filter(|value| !value.is_empty())?;
            Some(parse_protocol(variable, &value.to_string_lossy()))
        })
        .unwrap_or(Ok(OtlpProtocol::Grpc))
}

fn parse_protocol(variable: &'static str, value: &str) -> Result<OtlpProtocol, TelemetryError> {
    match value.trim() {
        "grpc" => Ok(OtlpProtocol::Grpc),
        "http/protobuf" => Ok(OtlpProtocol::HttpProtobuf),
        _ => Err(TelemetryError::Protocol { variable, value: value.to_owned() }),
    }
}

const fn example(protocol: OtlpProtocol) -> &'static str {
    match protocol {
        OtlpProtocol::Grpc => "http://127.0.0.1:4317",
        OtlpProtocol::HttpProtobuf => "http://127.0.0.1:4318/v1/traces",
    }
}

/// A collector's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// How to talk to it.
    pub(crate) protocol: OtlpProtocol,
    /// What the exporter is given.
    pub(crate) url: String,
    /// Its host, without the brackets of an IPv6 address.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
}

impl Endpoint {
    /// The URL as it may be shown.
    pub(crate) fn shown(&self) -> String {
        without_user_info(&self.url)
    }

    /// Reads a URL. `grpc://host:port` is `http://host:port` over gRPC, as in vLLM's examples. For HTTP, a URL without
    /// a path gets `/v1/traces`; any other path is used as it is.
    pub(crate) fn parse(text: &str, protocol: OtlpProtocol) -> Result<Self, TelemetryError> {
        parse(text.trim(), protocol).map_err(|fault| TelemetryError::Endpoint {
            endpoint: without_user_info(text),
            fault,
            example: example(protocol),
        })
    }
}

/// An endpoint as it may be shown: user name and password belong to nobody's terminal or log.
pub(crate) fn without_user_info(url: &str) -> String {
    match url.rsplit_once('@') {
        None => url.to_owned(),
        Some((before, host)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://***@{host}"),
            None => format!("***@{host}"),
        },
    }
}

fn parse(text: &str, protocol: OtlpProtocol) -> Result<Endpoint, String> {
    let (scheme, rest) = text.split_once("://").ok_or("it has no scheme")?;
    match (scheme.to_ascii_lowercase().as_str(), protocol) {
        ("http", _) | ("grpc", OtlpProtocol::Grpc) => {}
        ("grpc", OtlpProtocol::HttpProtobuf) => return Err("the scheme is grpc, the protocol http/protobuf".to_owned()),
        ("https", _) => return Err("https is not supported; send over http to a collector nearby".to_owned()),
        (other, _) => return Err(format!("unknown scheme `{other}`")),
    }
    let uri: Uri = format!("http://{rest}").parse().map_err(|error| format!("not a URL: {error}"))?;
    let host = uri.host().map_or("", |host| host.trim_matches(['[', ']']));
    if host.is_empty() {
        return Err("it has no host".to_owned());
    }
    let port = match (uri.port_u16(), uri.authority()) {
        (Some(port), _) => port,
        // `host:` and `host:99999` have a colon behind the host, and no port.
        (None, Some(authority))
            if authority.as_str().rsplit(['@', ']']).next().is_some_and(|end| end.contains(':')) =>
        {
            return Err("its port is not a number from 0 to 65535".to_owned());
        }
        (None, _) => 80,
    };
    let url = match protocol {
        OtlpProtocol::HttpProtobuf if uri.path() == "/" && uri.query().is_none() => {
            format!("{}/v1/traces", uri.to_string().trim_end_matches('/'))
        }
        OtlpProtocol::HttpProtobuf | OtlpProtocol::Grpc => uri.to_string(),
    };
    Ok(Endpoint { protocol, url, host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, protocol: OtlpProtocol, url: &str, host: &str, port: u16) {
        let endpoint = Endpoint::parse(text, protocol).expect("the endpoint is valid");
        assert_eq!(endpoint, Endpoint { protocol, url: url.to_owned(), host: host.to_owned(), port });
    }

    #[track_caller]
    fn check_refused(text: &str, protocol: OtlpProtocol, fault: &str) {
        let error = Endpoint::parse(text, protocol).expect_err("the endpoint is invalid").to_string();
        let start = format!("otlp_traces_endpoint `{text}`: {fault}");
        assert!(error.starts_with(&start), "expected `{start}`, got `{error}`");
    }

    #[test]
    fn a_grpc_endpoint_is_a_host_and_a_port() {
        check("http://collector:4317", OtlpProtocol::Grpc, "http://collector:4317/", "collector", 4317);
        check("grpc://collector:4317", OtlpProtocol::Grpc, "http://collector:4317/", "collector", 4317);
        check("HTTP://[::1]:4317", OtlpProtocol::Grpc, "http://[::1]:4317/", "::1", 4317);
    }

    #[test]
    fn an_http_endpoint_without_a_path_gets_the_one_of_traces() {
        check("http://c:4318", OtlpProtocol::HttpProtobuf, "http://c:4318/v1/traces", "c", 4318);
        check("http://c:4318/", OtlpProtocol::HttpProtobuf, "http://c:4318/v1/traces", "c", 4318);
        check("http://user:word@c", OtlpProtocol::HttpProtobuf, "http://user:word@c/v1/traces", "c", 80);
        check("http://c/api/otel", OtlpProtocol::HttpProtobuf, "http://c/api/otel", "c", 80);
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_its_fault() {
        check_refused("collector:4317", OtlpProtocol::Grpc, "it has no scheme");
        check_refused("", OtlpProtocol::Grpc, "it has no scheme");
        check_refused("https://collector:4317", OtlpProtocol::Grpc, "https is not supported");
        check_refused("ftp://collector:4317", OtlpProtocol::Grpc, "unknown scheme `ftp`");
        check_refused("grpc://collector:4317", OtlpProtocol::HttpProtobuf, "the scheme is grpc, the protocol http");
        check_refused("http://collector:99999", OtlpProtocol::Grpc, "its port is not a number");
        check_refused("http://collector:", OtlpProtocol::Grpc, "its port is not a number");
        check_refused("http://", OtlpProtocol::Grpc, "not a URL");
        check_refused("http://a b:4317", OtlpProtocol::Grpc, "not a URL");
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_user_info("http://user:secret@c:4318/v1"), "http://***@c:4318/v1");
        assert_eq!(without_user_info("user:secret@c"), "***@c");
        assert_eq!(without_user_info("http://c:4317"), "http://c:4317");
        let error = Endpoint::parse("ftp://user:secret@c", OtlpProtocol::Grpc).expect_err("unknown scheme");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn a_protocol_that_is_not_built_in_is_refused_by_its_variable() {
        let error = parse_protocol("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").expect_err("there is no JSON");
        assert_eq!(
            error.to_string(),
            "OTEL_EXPORTER_OTLP_PROTOCOL=`http/json`: unknown protocol, expected `grpc` or `http/protobuf`"
        );
        assert_eq!(parse_protocol("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").expect("it is known"), OtlpProtocol::Grpc);
    }
}

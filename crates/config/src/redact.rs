//! What is not shown: the user and password of a URL.

/// Returns `url` with `***` for its user information: `http://user:secret@host` becomes `http://***@host`.
///
/// Whatever precedes the last `@` goes. By the grammar of URLs the user information ends before the first slash, but a
/// password whose slash was not escaped is a password all the same; rather a path is hidden than a secret shown.
pub(crate) fn without_user_info(url: &str) -> String {
    let Some((before, host)) = url.rsplit_once('@') else { return url.to_owned() };
    // Without a scheme the secret may stand first.
    let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    match before.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, _)) => format!("{scheme}://***@{host}"),
        None => format!("***@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_hidden_and_all_else_is_kept() {
        for (url, shown) in [
            ("http://user:secret@host:4317/v1/traces?a=b", "http://***@host:4317/v1/traces?a=b"),
            ("http://token@[::1]:4317", "http://***@[::1]:4317"),
            ("http://user:se@c/r@et@host", "http://***@host"),
            ("user:secret@host:4317", "***@host:4317"),
            ("user:a://b@host", "***@host"),
            ("http://host:4317/v1/traces", "http://host:4317/v1/traces"),
            ("", ""),
        ] {
            assert_eq!(without_user_info(url), shown);
        }
    }
}

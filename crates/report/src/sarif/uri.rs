//! Paths as URIs.

use serde_json::{Value, json};

/// Where a file is: from the root of the checkout, or absolutely.
pub(super) fn artifact(file: &str) -> Value {
    let path = file.replace('\\', "/");
    let (drive, below) = path.split_at_checked(2).unwrap_or_default();
    let is_drive = drive.ends_with(':')
        && drive.starts_with(|it: char| it.is_ascii_alphabetic())
        && below.starts_with('/');
    if path.starts_with('/') {
        json!({ "uri": format!("file://{}", encoded(&path)) })
    } else if is_drive {
        json!({ "uri": format!("file:///{drive}{}", encoded(below)) })
    } else {
        json!({ "uri": encoded(path.strip_prefix("./").unwrap_or(&path)), "uriBaseId": "%SRCROOT%" })
    }
}

/// A path with all percent-encoded that has a meaning of its own in a URI.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        for (path, uri) in [
            ("src/train.py", "src/train.py"),
            ("./a b/ü#.py", "a%20b/%C3%BC%23.py"),
            ("/tmp/x.py", "file:///tmp/x.py"),
            ("src\\x.py", "src/x.py"),
            ("100%.py", "100%25.py"),
            ("C:\\src\\x.py", "file:///C:/src/x.py"),
            ("a:b.py", "a%3Ab.py"),
            ("a::b.py", "a%3A%3Ab.py"),
        ] {
            assert_eq!(artifact(path)["uri"], uri);
        }
    }
}

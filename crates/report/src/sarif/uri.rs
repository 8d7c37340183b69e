//! Paths as URIs.

use serde_json::{Value, json};

/// Where a file is: from the root of the checkout, or absolutely.
pub(super) fn artifact(file: &str) -> Value {
    let path = file.replace('\\', "/");
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    if path.starts_with('/') {
        json!({ "uri": format!("file://{}", encoded(&path)) })
    } else if is_drive {
        json!({ "uri": format!("file:///{}", encoded(&path)) })
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
        ] {
            assert_eq!(artifact(path)["uri"], uri);
        }
    }
}

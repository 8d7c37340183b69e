//! Messages over pipes, as the protocol frames them.
//!
//! Not with `lsp-server`'s own threads: one message that is no message would end those, and one with a wrong length would
//! ask for all memory.

use std::io::{self, BufRead, Read as _, Write};

use lsp_server::{Message, RequestId};
use serde_json::Value;

/// Longer messages are no texts that people edit.
const MOST_BYTES: u64 = 512 << 20;
/// Longer lines are no headers.
const MOST_HEADER_BYTES: u64 = 8 << 10;

/// What the client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message.
    Message(Message),
    /// Something framed as a message that is none: the id by which an answer is awaited, and what is wrong.
    Wrong(Option<RequestId>, String),
}

/// The next message; nothing at the end of the input. Fails where it cannot be told where the next one begins.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let Some(length) = read_headers(input)? else { return Ok(None) };
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Ok(None);
    }
    Ok(Some(match serde_json::from_slice::<Value>(&body) {
        Ok(value) => understood(value),
        Err(error) => Incoming::Wrong(None, format!("a message is no JSON: {error}")),
    }))
}

/// Sends a message.
pub(super) fn write(output: &mut impl Write, message: &Message) -> io::Result<()> {
    message.write(output)
}

fn understood(value: Value) -> Incoming {
    let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(message),
        Err(_) => Incoming::Wrong(id, "neither a request, nor a notification, nor a response".to_owned()),
    }
}

/// The length of the body; nothing at the end of the input.
fn read_headers(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input.by_ref().take(MOST_HEADER_BYTES).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let Some(line) = line.strip_suffix('\n') else { return Err(wrong("a header does not end")) };
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("a header has no colon"))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let value: u64 = value.trim().parse().map_err(|_| wrong("a length is no number"))?;
            length = Some(value);
        }
    }
    match length {
        Some(length) if length <= MOST_BYTES => Ok(Some(length)),
        Some(_) => Err(wrong("a message is too long")),
        None => Err(wrong("a message has no length")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read, one after the other.
    fn check(input: &[u8], expect: &str) {
        let mut input = input;
        let mut found = Vec::new();
        loop {
            match read(&mut input) {
                Ok(None) => break,
                Ok(Some(Incoming::Message(Message::Request(request)))) => {
                    found.push(format!("{}#{}", request.method, request.id));
                }
                Ok(Some(Incoming::Message(Message::Notification(it)))) => found.push(it.method),
                Ok(Some(Incoming::Message(Message::Response(it)))) => {
                    found.push(format!("response#{}", it.id));
                }
                Ok(Some(Incoming::Wrong(id, _))) => found.push(format!("wrong {}", id.is_some())),
                Err(error) => {
                    found.push(error.to_string());
                    break;
                }
            }
        }
        assert_eq!(found.join(", "), expect);
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn a_wrong_message_keeps_no_other_from_being_read() {
        let all = [
            r#"{"id":1,"method":"a"}"#,
            "{",
            r#"{"id":"x","what":1}"#,
            "[]",
            r#"{"id":1,"result":null}"#,
            r#"{"method":"b"}"#,
        ];
        check(
            all.map(framed).concat().as_bytes(),
            "a#1, wrong false, wrong true, wrong false, response#1, b",
        );
    }

    #[test]
    fn where_messages_cannot_be_told_apart_it_ends() {
        check(b"", "");
        check(b"Content-Length: 5\r\n\r\n{}", "");
        check(b"Content-Type: x\ncontent-length:2\n\n{}", "wrong false");
        check(b"Content-Length: 99999999999999\r\n\r\n", "a message is too long");
        check(b"Content-Length: -1\r\n\r\n", "a length is no number");
        check(b"Content-Type: x\r\n\r\n", "a message has no length");
        check(b"hello\r\n", "a header has no colon");
        check(b"hello", "a header does not end");
    }
}

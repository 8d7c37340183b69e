//! What editors talk to: `vramscope lsp`, on the standard input and output.
//!
//! One thread reads, another does all the rest, one message after the other. Files are checked when nothing was heard for a
//! moment, or when somebody asks.

mod actions;
mod client;
mod diagnostics;
mod documents;
mod hover;
mod open_file;
mod positions;
mod projects;
mod server;
mod transport;

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use lsp_server::Message;
use lsp_types::notification::{Exit, Notification as _};

use server::Server;
use transport::Incoming;

/// Serves until the client leaves; whether it said so before, as it should.
pub(crate) fn serve() -> io::Result<bool> {
    let (sender, receiver) = mpsc::channel();
    // It ends with the input, or with the program.
    std::thread::Builder::new().name("language-client".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let next = transport::read(&mut input);
            let is_last = !matches!(next, Ok(Some(_)));
            if sender.send(next).is_err() || is_last {
                break;
            }
        }
    })?;
    let mut output = io::stdout();
    let mut server = Server::default();
    let result = converse(&receiver, &mut server, &mut output);
    match result {
        // A client that is gone wants no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(server.is_leaving()),
        Err(error) => Err(error),
        Ok(()) => Ok(server.is_leaving()),
    }
}

fn converse(
    receiver: &Receiver<io::Result<Option<Incoming>>>,
    server: &mut Server,
    output: &mut impl io::Write,
) -> io::Result<()> {
    loop {
        let next = match server.patience() {
            Some(patience) => receiver.recv_timeout(patience),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Ok(Some(Incoming::Message(Message::Notification(it))))) if it.method == Exit::METHOD => {
                return Ok(());
            }
            Ok(Ok(Some(Incoming::Message(Message::Notification(it))))) => server.take_notification(it),
            Ok(Ok(Some(Incoming::Message(Message::Request(it))))) => server.take_request(it),
            Ok(Ok(Some(Incoming::Message(Message::Response(_))))) => {}
            Ok(Ok(Some(Incoming::Wrong(id, why)))) => server.refuse(id, why),
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => server.settle(),
        }
        for message in server.sent() {
            transport::write(output, &message)?;
        }
    }
}

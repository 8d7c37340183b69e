//! The state of the server, and what each message does to it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types as types;
use lsp_types::notification as note;
use lsp_types::notification::Notification as _;
use lsp_types::request as ask;
use lsp_types::request::Request as _;
use lsp_types::{Diagnostic, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use vramscope_lint::Checked;

use super::client::Client;
use super::documents::Documents;
use super::open_file::{OpenFile, real_path};
use super::projects::Projects;
use super::{actions, diagnostics, hover};

/// How long nothing must be heard before files are checked, so that not each letter is.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
/// Where a check takes long, it waits for as long, up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How far the conversation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Greeting,
    Working,
    Leaving,
}

/// An open file and what was found in it.
struct Outcome {
    file: OpenFile,
    checked: Checked,
}

/// A language server, apart from its pipes.
#[derive(Default)]
pub(super) struct Server {
    phase: Phase,
    client: Client,
    documents: Documents,
    projects: Projects,
    outcomes: Vec<Outcome>,
    /// Something changed since the files were checked.
    is_stale: bool,
    last_check: Duration,
    /// What the client shows of each document because it was sent.
    shown: BTreeMap<String, (i32, Vec<Diagnostic>)>,
    /// To be sent.
    outbox: Vec<Message>,
    requests: i32,
}

/// The answer to a request, or why there is none.
type Answer = Result<Value, (ErrorCode, String)>;

impl Server {
    /// What is to be sent.
    pub(super) fn sent(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.outbox)
    }

    /// How long to wait for another message before [`Self::settle`]; without end if nothing is to be done.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.is_stale.then(|| self.last_check.clamp(SHORTEST_WAIT, LONGEST_WAIT))
    }

    /// Whether the client has said that it will leave.
    pub(super) fn is_leaving(&self) -> bool {
        self.phase == Phase::Leaving
    }

    /// Answers a message that is none.
    pub(super) fn refuse(&mut self, id: Option<RequestId>, why: String) {
        match id {
            Some(id) => self.respond(id, Err((ErrorCode::InvalidRequest, why))),
            None => self.log(why),
        }
    }

    pub(super) fn take_request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answer = match (self.phase, method.as_str()) {
            (Phase::Greeting, ask::Initialize::METHOD) => self.initialize(params),
            (Phase::Greeting, _) => {
                Err((ErrorCode::ServerNotInitialized, "`initialize` comes first".to_owned()))
            }
            (Phase::Working, ask::Initialize::METHOD) => {
                Err((ErrorCode::InvalidRequest, "the server is initialized already".to_owned()))
            }
            (_, ask::Shutdown::METHOD) => {
                self.phase = Phase::Leaving;
                self.is_stale = false;
                Ok(Value::Null)
            }
            (Phase::Leaving, _) => Err((ErrorCode::InvalidRequest, "the server is shutting down".to_owned())),
            (_, ask::DocumentDiagnosticRequest::METHOD) => {
                read(params).and_then(|params| self.pulled(&params))
            }
            (_, ask::CodeActionRequest::METHOD) => read(params).and_then(|params| self.actions(&params)),
            (_, ask::HoverRequest::METHOD) => read(params).and_then(|params| self.hover(&params)),
            _ => Err((ErrorCode::MethodNotFound, format!("`{method}` is not offered"))),
        };
        self.respond(id, answer);
    }

    pub(super) fn take_notification(&mut self, notification: Notification) {
        if self.phase != Phase::Working {
            return;
        }
        let Notification { method, params } = notification;
        let result = match method.as_str() {
            note::Initialized::METHOD => {
                self.watch();
                Ok(())
            }
            note::DidOpenTextDocument::METHOD => {
                read(params).map(|it: types::DidOpenTextDocumentParams| self.documents.open(it.text_document))
            }
            note::DidChangeTextDocument::METHOD => {
                read(params).map(|it: types::DidChangeTextDocumentParams| {
                    let document = it.text_document;
                    let encoding = self.client.encoding;
                    self.documents.change(&document.uri, document.version, it.content_changes, encoding);
                })
            }
            note::DidCloseTextDocument::METHOD => {
                read(params).map(|it: types::DidCloseTextDocumentParams| {
                    let uri = it.text_document.uri;
                    self.documents.close(&uri);
                    self.forget(std::slice::from_ref(&uri), &uri);
                })
            }
            note::DidSaveTextDocument::METHOD | note::DidSaveNotebookDocument::METHOD => {
                self.saved();
                Ok(())
            }
            note::DidOpenNotebookDocument::METHOD => {
                read(params).map(|it: types::DidOpenNotebookDocumentParams| {
                    self.documents.open_notebook(it.notebook_document, it.cell_text_documents);
                })
            }
            note::DidChangeNotebookDocument::METHOD => {
                read(params).map(|it: types::DidChangeNotebookDocumentParams| {
                    if let Some(cells) = it.change.cells {
                        let uri = it.notebook_document.uri;
                        self.documents.change_notebook(&uri, cells, self.client.encoding);
                    }
                })
            }
            note::DidCloseNotebookDocument::METHOD => {
                read(params).map(|it: types::DidCloseNotebookDocumentParams| {
                    let uri = it.notebook_document.uri;
                    let cells = self.documents.close_notebook(&uri);
                    self.forget(&cells, &uri);
                })
            }
            note::DidChangeWatchedFiles::METHOD => read(params).map(|it| self.changed_on_disk(&it)),
            note::DidChangeWorkspaceFolders::METHOD => read(params).map(|it| self.changed_folders(it)),
            note::DidChangeConfiguration::METHOD => {
                self.projects.reload();
                Ok(())
            }
            // `$/cancelRequest` comes too late: requests are answered one after the other.
            _ => return,
        };
        match result {
            Ok(()) => self.is_stale = true,
            Err((_, why)) => self.log(format!("{method}: {why}")),
        }
    }

    /// Checks what is open if anything changed, and sends what was found to clients that do not ask.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let began = Instant::now();
        let texts = self.documents.files().map(OpenFile::of_text);
        let notebooks = self.documents.notebooks().map(|it| OpenFile::of_notebook(it, &self.documents));
        let files: Vec<OpenFile> = texts.chain(notebooks).collect();
        let checked = self.projects.check(&files.iter().collect::<Vec<_>>());
        let with_files = files.into_iter().zip(checked);
        self.outcomes =
            with_files.filter_map(|(file, checked)| Some(Outcome { file, checked: checked? })).collect();
        self.last_check = began.elapsed();
        for trouble in self.projects.troubles() {
            let message = types::ShowMessageParams { typ: types::MessageType::ERROR, message: trouble };
            self.notify::<note::ShowMessage>(message);
        }
        self.publish();
    }

    fn initialize(&mut self, params: Value) -> Answer {
        let params: types::InitializeParams = read(params)?;
        self.client = Client::of(&params.capabilities);
        #[expect(deprecated, reason = "what clients said before there were several folders")]
        let root = params.root_uri;
        let folders = params.workspace_folders.unwrap_or_default();
        let mut folders: Vec<Uri> = folders.into_iter().map(|folder| folder.uri).collect();
        if folders.is_empty() {
            folders.extend(root);
        }
        folders.iter().filter_map(real_path).for_each(|folder| self.projects.add_folder(folder));
        self.phase = Phase::Working;
        value(self.client.answer())
    }

    /// Asks to be told of files that change on disk.
    fn watch(&mut self) {
        if !self.client.watches {
            return;
        }
        let watcher = |pattern: &str| types::FileSystemWatcher {
            glob_pattern: types::GlobPattern::String(pattern.to_owned()),
            kind: None,
        };
        let patterns = ["**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/vramscope.toml"];
        let options = types::DidChangeWatchedFilesRegistrationOptions {
            watchers: patterns.into_iter().map(watcher).collect(),
        };
        let registration = types::Registration {
            id: "vramscope-files".to_owned(),
            method: note::DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        self.request::<ask::RegisterCapability>(types::RegistrationParams {
            registrations: vec![registration],
        });
    }

    /// Without word of changes on disk, a file that is saved is when to look.
    fn saved(&mut self) {
        if !self.client.watches {
            self.projects.reload();
        }
    }

    fn changed_on_disk(&mut self, params: &types::DidChangeWatchedFilesParams) {
        for change in &params.changes {
            let is_settings = change.uri.path().as_str().ends_with(".toml");
            let real = real_path(&change.uri).filter(|_| change.typ == types::FileChangeType::CHANGED);
            match real.filter(|_| !is_settings) {
                Some(real) => self.projects.reread(&real),
                None => self.projects.reload(),
            }
        }
        if self.client.pulls && self.client.refreshes {
            self.request::<ask::WorkspaceDiagnosticRefresh>(());
        }
    }

    fn changed_folders(&mut self, params: types::DidChangeWorkspaceFoldersParams) {
        let paths = |folders: Vec<types::WorkspaceFolder>| {
            folders.into_iter().filter_map(|folder| real_path(&folder.uri))
        };
        paths(params.event.removed).for_each(|folder| self.projects.remove_folder(&folder));
        paths(params.event.added).for_each(|folder| self.projects.add_folder(folder));
    }

    /// Nothing more is shown of documents that were closed; the file is what it is on disk.
    fn forget(&mut self, documents: &[Uri], file: &Uri) {
        if let Some(real) = real_path(file) {
            self.projects.reread(&real);
        }
        for uri in documents {
            if self.shown.remove(uri.as_str()).is_some_and(|(_, shown)| !shown.is_empty()) {
                self.notify::<note::PublishDiagnostics>(types::PublishDiagnosticsParams::new(
                    uri.clone(),
                    Vec::new(),
                    None,
                ));
            }
        }
    }

    /// Sends what is not shown yet. Of notebooks always: clients that ask do not ask for their cells.
    fn publish(&mut self) {
        let mut new = Vec::new();
        for outcome in self.outcomes.iter().filter(|it| it.file.is_notebook || !self.client.pulls) {
            let all = diagnostics::all(&outcome.file, &outcome.checked, &self.client);
            for (uri, version) in outcome.file.documents() {
                let of_document: Vec<Diagnostic> =
                    all.iter().filter(|(of, _)| of == uri).map(|(_, it)| it.clone()).collect();
                new.push((uri.clone(), version, of_document));
            }
        }
        // What is open but no longer checked, such as a cell that became text, has nothing to show.
        let gone: Vec<String> = self
            .shown
            .keys()
            .filter(|shown| !new.iter().any(|(uri, ..)| uri.as_str() == **shown))
            .cloned()
            .collect();
        new.extend(gone.into_iter().filter_map(|uri| {
            let (version, _) = self.shown.get(&uri)?;
            Some((uri.parse().ok()?, *version, Vec::new()))
        }));
        for (uri, version, diagnostics) in new {
            let now = (version, diagnostics);
            if self.shown.get(uri.as_str()) != Some(&now) {
                self.shown.insert(uri.as_str().to_owned(), now.clone());
                let params = types::PublishDiagnosticsParams::new(uri, now.1, Some(version));
                self.notify::<note::PublishDiagnostics>(params);
            }
        }
    }

    fn outcome(&mut self, uri: &Uri) -> Option<&Outcome> {
        self.settle();
        self.outcomes.iter().find(|outcome| outcome.file.has(uri))
    }

    fn pulled(&mut self, params: &types::DocumentDiagnosticParams) -> Answer {
        let client = self.client.clone();
        let uri = &params.text_document.uri;
        let outcome = self.outcome(uri).filter(|outcome| !outcome.file.is_notebook);
        let items = outcome.map(|it| diagnostics::all(&it.file, &it.checked, &client)).unwrap_or_default();
        value(types::DocumentDiagnosticReport::Full(types::RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: types::FullDocumentDiagnosticReport {
                result_id: None,
                items: items.into_iter().map(|(_, diagnostic)| diagnostic).collect(),
            },
        }))
    }

    fn actions(&mut self, params: &types::CodeActionParams) -> Answer {
        let client = self.client.clone();
        let uri = &params.text_document.uri;
        let Some(Outcome { file, checked }) = self.outcome(uri) else { return Ok(Value::Null) };
        let Some(part) = file.span(uri, params.range, client.encoding) else { return Ok(Value::Null) };
        value(actions::actions(file, checked, part, params.context.only.as_deref(), &client))
    }

    fn hover(&mut self, params: &types::HoverParams) -> Answer {
        let client = self.client.clone();
        let place = &params.text_document_position_params;
        let uri = &place.text_document.uri;
        let Some(Outcome { file, checked }) = self.outcome(uri) else { return Ok(Value::Null) };
        value(hover::hover(file, checked, uri, place.position, &client))
    }

    fn respond(&mut self, id: RequestId, answer: Answer) {
        self.outbox.push(Message::Response(match answer {
            Ok(value) => Response::new_ok(id, value),
            Err((code, why)) => Response::new_err(id, code as i32, why),
        }));
    }

    fn notify<N: note::Notification>(&mut self, params: N::Params) {
        self.outbox.push(Message::Notification(Notification::new(N::METHOD.to_owned(), params)));
    }

    /// Asks the client; its answer makes no difference.
    fn request<R: ask::Request>(&mut self, params: R::Params) {
        self.requests = self.requests.wrapping_add(1);
        let request = Request::new(self.requests.into(), R::METHOD.to_owned(), params);
        self.outbox.push(Message::Request(request));
    }

    fn log(&mut self, message: String) {
        if self.phase == Phase::Working {
            let params = types::LogMessageParams { typ: types::MessageType::WARNING, message };
            self.notify::<note::LogMessage>(params);
        }
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, (ErrorCode, String)> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn value(answer: impl Serialize) -> Answer {
    serde_json::to_value(answer).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

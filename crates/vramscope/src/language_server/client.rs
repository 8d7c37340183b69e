//! What the client can do, and what it is told that the server can.

use lsp_types::{
    ClientCapabilities, CodeActionKind, CodeActionOptions, CodeActionProviderCapability, DiagnosticOptions,
    DiagnosticServerCapabilities, HoverProviderCapability, InitializeResult, MarkupKind, Notebook,
    NotebookCellSelector, NotebookDocumentSyncOptions, NotebookSelector, OneOf, SaveOptions,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};

use super::positions::Encoding;

/// Makes all safe fixes of a file.
pub(super) const FIX_ALL: &str = "source.fixAll.vramscope";

/// What matters of a client's capabilities.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what a client can do, each on its own")]
pub(super) struct Client {
    pub(super) encoding: Encoding,
    /// It asks for diagnostics, so they need not be sent.
    pub(super) pulls: bool,
    /// It can be told to ask again.
    pub(super) refreshes: bool,
    /// It can tell which files changed on disk.
    pub(super) watches: bool,
    /// Edits can say of which version of a document they are.
    pub(super) versioned_edits: bool,
    pub(super) related_information: bool,
    pub(super) code_description: bool,
    pub(super) tags: bool,
    pub(super) markdown: bool,
}

impl Client {
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        let text = capabilities.text_document.as_ref();
        let workspace = capabilities.workspace.as_ref();
        let publishing = text.and_then(|it| it.publish_diagnostics.as_ref());
        let offered = capabilities.general.as_ref().and_then(|it| it.position_encodings.as_deref());
        let formats = text.and_then(|it| it.hover.as_ref()).and_then(|hover| hover.content_format.as_deref());
        Self {
            encoding: Encoding::of(offered.unwrap_or_default()),
            pulls: text.is_some_and(|it| it.diagnostic.is_some()),
            refreshes: workspace
                .and_then(|it| it.diagnostic.as_ref())
                .and_then(|it| it.refresh_support)
                .unwrap_or_default(),
            watches: workspace
                .and_then(|it| it.did_change_watched_files.as_ref())
                .and_then(|it| it.dynamic_registration)
                .unwrap_or_default(),
            versioned_edits: workspace
                .and_then(|it| it.workspace_edit.as_ref())
                .and_then(|it| it.document_changes)
                .unwrap_or_default(),
            related_information: publishing.and_then(|it| it.related_information).unwrap_or_default(),
            code_description: publishing.and_then(|it| it.code_description_support).unwrap_or_default(),
            tags: publishing.is_some_and(|it| it.tag_support.is_some()),
            markdown: formats.is_some_and(|formats| formats.contains(&MarkupKind::Markdown)),
        }
    }

    /// The answer to `initialize`.
    pub(super) fn answer(&self) -> InitializeResult {
        let cells = vec![NotebookCellSelector { language: "python".to_owned() }];
        let notebooks = NotebookSelector::ByCells { notebook: Some(Notebook::String("*".to_owned())), cells };
        let diagnostics = DiagnosticOptions {
            identifier: Some("vramscope".to_owned()),
            inter_file_dependencies: true,
            ..DiagnosticOptions::default()
        };
        InitializeResult {
            capabilities: ServerCapabilities {
                position_encoding: Some(self.encoding.kind()),
                text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::INCREMENTAL),
                    save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions::default())),
                    ..TextDocumentSyncOptions::default()
                })),
                notebook_document_sync: Some(OneOf::Left(NotebookDocumentSyncOptions {
                    notebook_selector: vec![notebooks],
                    save: Some(true),
                })),
                hover_provider: Some(HoverProviderCapability::Simple(true)),
                code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                    code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::new(FIX_ALL)]),
                    ..CodeActionOptions::default()
                })),
                diagnostic_provider: self.pulls.then_some(DiagnosticServerCapabilities::Options(diagnostics)),
                workspace: Some(WorkspaceServerCapabilities {
                    workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                        supported: Some(true),
                        change_notifications: Some(OneOf::Left(true)),
                    }),
                    file_operations: None,
                }),
                ..ServerCapabilities::default()
            },
            server_info: Some(ServerInfo {
                name: "vramscope".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        }
    }
}

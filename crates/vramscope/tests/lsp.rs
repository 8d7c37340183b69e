//! `vramscope lsp`, as editors talk to it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::io::{BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsp_server::{Message, Notification, Request, Response};
use serde_json::{Value, json};

/// `losses` keeps a graph each step; what is kept stands behind a character of two units in UTF-16 and four bytes.
const TRAIN: &str = "\
import torch
import torch.nn.functional as F

model = torch.nn.Linear(2, 2)
losses = []
for batch in loader:
    loss = F.mse_loss(model(batch), batch); name = '𝄞'; losses.append(loss)
print(losses[-1].item())
";

/// An editor with the server that it started.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: i32,
    /// Came while an answer was awaited.
    waiting: Vec<Notification>,
    /// What the server asked.
    asked: Vec<Request>,
}

impl Editor {
    fn start() -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("vramscope"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, requests: 0, waiting: Vec::new(), asked: Vec::new() }
    }

    /// With a folder open; `capabilities` besides those that are usual.
    fn open(folder: &Path, capabilities: &Value) -> (Self, Value) {
        let mut editor = Self::start();
        let params = json!({
            "processId": null, "rootUri": uri(folder),
            "workspaceFolders": [{ "uri": uri(folder), "name": "project" }],
            "capabilities": capabilities,
        });
        let answer = editor.ask("initialize", params).unwrap();
        editor.tell("initialized", json!({}));
        (editor, answer)
    }

    fn send(&mut self, message: &Message) {
        message.write(self.input.as_mut().unwrap()).unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&Notification::new(method.to_owned(), params).into());
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, i32> {
        self.requests += 1;
        self.send(&Request::new(self.requests.into(), method.to_owned(), params).into());
        loop {
            match Message::read(&mut self.output).unwrap().unwrap() {
                Message::Response(Response { id, response_result }) => {
                    assert_eq!(id, self.requests.into());
                    return response_result.map_err(|error| error.code);
                }
                Message::Notification(it) => self.waiting.push(it),
                Message::Request(it) => self.asked.push(it),
            }
        }
    }

    /// The next notification of this kind.
    fn hear(&mut self, method: &str) -> Value {
        if let Some(at) = self.waiting.iter().position(|it| it.method == method) {
            return self.waiting.remove(at).params;
        }
        loop {
            match Message::read(&mut self.output).unwrap().unwrap() {
                Message::Notification(it) if it.method == method => return it.params,
                Message::Notification(it) => self.waiting.push(it),
                Message::Request(it) => self.asked.push(it),
                Message::Response(it) => panic!("nothing was asked: {it:?}"),
            }
        }
    }

    fn show(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "python", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Diagnostics of a version of a document, as lines.
    fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<String> {
        loop {
            let params = self.hear("textDocument/publishDiagnostics");
            if params["uri"] == uri && params["version"] == version {
                return lines(&params["diagnostics"]);
            }
        }
    }

    fn actions(&mut self, uri: &str, line: u32, only: &Value) -> Vec<Value> {
        let range = range((line, 0), (line, 500));
        let context = if only.is_null() {
            json!({ "diagnostics": [] })
        } else {
            json!({ "diagnostics": [], "only": only })
        };
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": context });
        self.ask("textDocument/codeAction", params).unwrap().as_array().unwrap().clone()
    }

    /// Leaves as it should be done, and gives the exit status.
    fn leave(mut self) -> i32 {
        assert_eq!(self.ask("shutdown", Value::Null), Ok(Value::Null));
        assert_eq!(self.ask("textDocument/hover", json!({})), Err(-32600));
        self.tell("exit", Value::Null);
        self.child.wait().unwrap().code().unwrap()
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.canonicalize().unwrap().display())
}

fn range(start: (u32, u32), end: (u32, u32)) -> Value {
    let position = |(line, character): (u32, u32)| json!({ "line": line, "character": character });
    json!({ "start": position(start), "end": position(end) })
}

fn lines(diagnostics: &Value) -> Vec<String> {
    let line = |it: &Value| {
        let start = &it["range"]["start"];
        format!(
            "{}:{} {} {}",
            start["line"],
            start["character"],
            it["severity"],
            it["code"].as_str().unwrap_or("-")
        )
    };
    diagnostics.as_array().unwrap().iter().map(line).collect()
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// What is left of a text after the edits of an action, whose columns are bytes.
fn edited(text: &str, edits: &Value) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut edits: Vec<&Value> = edits.as_array().unwrap().iter().collect();
    edits.reverse();
    for edit in edits {
        let number = |end: &str, what: &str| edit["range"][end][what].as_u64().unwrap() as usize;
        assert_eq!(number("start", "line"), number("end", "line"));
        let bytes = number("start", "character")..number("end", "character");
        lines[number("start", "line")].replace_range(bytes, edit["newText"].as_str().unwrap());
    }
    lines.concat()
}

#[test]
fn columns_are_counted_as_the_client_can() {
    for (encodings, used, column) in [
        (json!(["utf-16", "utf-8"]), "utf-8", 59),
        (json!(["utf-16"]), "utf-16", 57),
        (Value::Null, "utf-16", 57),
    ] {
        let dir = project(&[("train.py", TRAIN)]);
        let (mut editor, answer) =
            Editor::open(dir.path(), &json!({ "general": { "positionEncodings": encodings } }));
        assert_eq!(answer["capabilities"]["positionEncoding"], used);
        let file = uri(&dir.path().join("train.py"));
        editor.show(&file, TRAIN);
        assert_eq!(editor.diagnostics(&file, 1), [format!("6:{column} 1 LK102")]);
        assert_eq!(editor.leave(), 0);
    }
}

#[test]
fn what_is_typed_is_what_is_checked() {
    let dir = project(&[("train.py", "")]);
    let (mut editor, _) = Editor::open(dir.path(), &json!({}));
    let file = uri(&dir.path().join("train.py"));
    let text = TRAIN.replace('\n', "\r\n");
    editor.show(&file, &text);
    assert_eq!(editor.diagnostics(&file, 1), ["6:57 1 LK102"]);
    let change = |version: i32, changes: Value| json!({ "textDocument": { "uri": file, "version": version }, "contentChanges": changes });
    // `loss` becomes `loss.detach()`, behind the character of two units.
    let behind = range((6, 75), (6, 75));
    editor.tell("textDocument/didChange", change(2, json!([{ "range": behind, "text": ".detach()" }])));
    assert_eq!(editor.diagnostics(&file, 2), [""; 0]);
    let back = range((6, 75), (6, 84));
    let above = range((0, 0), (0, 0));
    let changes = json!([{ "range": back, "text": "" }, { "range": above, "text": "#\r\n" }]);
    editor.tell("textDocument/didChange", change(3, changes));
    assert_eq!(editor.diagnostics(&file, 3), ["7:57 1 LK102"]);
    editor.tell("textDocument/didChange", change(4, json!([{ "text": "x = 1\n" }])));
    assert_eq!(editor.diagnostics(&file, 4), [""; 0]);
    editor.tell("textDocument/didChange", change(5, json!([{ "text": TRAIN }])));
    assert_eq!(editor.diagnostics(&file, 5), ["6:57 1 LK102"]);
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": file } }));
    let closed = editor.hear("textDocument/publishDiagnostics");
    assert_eq!((&closed["uri"], &closed["diagnostics"]), (&json!(file), &json!([])));
    assert_eq!(editor.leave(), 0);
}

#[test]
fn a_client_that_asks_is_told_only_then() {
    let dir = project(&[("train.py", TRAIN)]);
    let capabilities = json!({ "textDocument": {
        "diagnostic": {},
        "publishDiagnostics": { "relatedInformation": true, "codeDescriptionSupport": true },
    }});
    let (mut editor, answer) = Editor::open(dir.path(), &capabilities);
    assert_eq!(answer["capabilities"]["diagnosticProvider"]["interFileDependencies"], true);
    let file = uri(&dir.path().join("train.py"));
    editor.show(&file, TRAIN);
    let document = json!({ "textDocument": { "uri": file } });
    let report = editor.ask("textDocument/diagnostic", document).unwrap();
    assert_eq!((&report["kind"], lines(&report["items"])), (&json!("full"), vec!["6:57 1 LK102".to_owned()]));
    let found = &report["items"][0];
    assert_eq!(found["source"], "vramscope");
    assert!(found["message"].as_str().unwrap().contains("\nhint: "), "{found}");
    assert_eq!(found["relatedInformation"][0]["location"]["range"]["start"]["line"], 5);
    assert!(found["codeDescription"]["href"].as_str().unwrap().ends_with("/docs/rules/LK102.md"));
    assert_eq!(found["data"]["fix"]["applicability"], "safe");
    let unknown = json!({ "textDocument": { "uri": "file:///nowhere.py" } });
    assert_eq!(editor.ask("textDocument/diagnostic", unknown).unwrap()["items"], json!([]));
    assert!(editor.waiting.is_empty(), "{:?}", editor.waiting);
    assert_eq!(editor.leave(), 0);
}

#[test]
fn fixes_and_suppressions_are_offered() {
    let dir = project(&[("train.py", TRAIN)]);
    let capabilities = json!({
        "general": { "positionEncodings": ["utf-8"] }, "workspace": { "workspaceEdit": { "documentChanges": true } },
    });
    let (mut editor, _) = Editor::open(dir.path(), &capabilities);
    let file = uri(&dir.path().join("train.py"));
    editor.show(&file, TRAIN);
    let actions = editor.actions(&file, 6, &Value::Null);
    let titles: Vec<&str> = actions.iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(
        titles,
        [
            "LK102: add `.detach()`, which lets go of the graph",
            "LK102: disable for this line",
            "vramscope: make all safe fixes",
        ]
    );
    assert_eq!((&actions[0]["kind"], &actions[0]["isPreferred"]), (&json!("quickfix"), &json!(true)));
    assert_eq!(actions[2]["kind"], "source.fixAll.vramscope");
    let change = |action: &Value| action["edit"]["documentChanges"][0].clone();
    assert_eq!(change(&actions[0])["textDocument"], json!({ "uri": file, "version": 1 }));
    let fixed = TRAIN.replace("append(loss)", "append(loss.detach())");
    for action in [&actions[0], &actions[2]] {
        assert_eq!(edited(TRAIN, &change(action)["edits"]), fixed);
    }
    let silent = TRAIN.replace("append(loss)", "append(loss)  # vramscope: ignore[LK102]");
    assert_eq!(edited(TRAIN, &change(&actions[1])["edits"]), silent);
    assert_eq!(editor.actions(&file, 0, &json!(["quickfix"])), [Value::Null; 0]);
    assert_eq!(editor.actions(&file, 0, &json!(["source.fixAll"])).len(), 1);
    assert_eq!(editor.actions(&file, 6, &json!(["refactor"])), [Value::Null; 0]);
    // In a file that is no Python nothing is fixed at once.
    let content = json!([{ "text": format!("{TRAIN}x = (") }]);
    let params = json!({ "textDocument": { "uri": file, "version": 2 }, "contentChanges": content });
    editor.tell("textDocument/didChange", params);
    assert_eq!(editor.actions(&file, 6, &json!(["source"])), [Value::Null; 0]);
    assert_eq!(editor.leave(), 0);
}

#[test]
fn an_old_client_gets_edits_without_versions() {
    let dir = project(&[("train.py", TRAIN)]);
    let (mut editor, _) = Editor::open(dir.path(), &json!({}));
    let file = uri(&dir.path().join("train.py"));
    editor.show(&file, TRAIN);
    let actions = editor.actions(&file, 6, &json!(["quickfix"]));
    assert_eq!(actions[0]["edit"]["changes"][&file][0]["newText"], ".detach()");
    assert_eq!(editor.leave(), 0);
}

#[test]
fn the_mouse_shows_the_page_of_a_rule() {
    let text = format!("{TRAIN}# vramscope: ignore[LK101]\nx = 1\n");
    let dir = project(&[("train.py", &text)]);
    let capabilities = json!({ "textDocument": { "hover": { "contentFormat": ["markdown"] } } });
    let (mut editor, _) = Editor::open(dir.path(), &capabilities);
    let file = uri(&dir.path().join("train.py"));
    editor.show(&file, &text);
    let mut hover = |line: u32, character: u32| {
        let position = json!({ "line": line, "character": character });
        let params = json!({ "textDocument": { "uri": file }, "position": position });
        editor.ask("textDocument/hover", params).unwrap()
    };
    let page = hover(6, 60);
    assert_eq!(page["contents"]["kind"], "markdown");
    assert!(page["contents"]["value"].as_str().unwrap().starts_with("# append-attached-tensor (LK102)"));
    let page = hover(8, 21);
    assert!(page["contents"]["value"].as_str().unwrap().starts_with("# accumulate-attached-loss (LK101)"));
    assert_eq!([hover(0, 0), hover(900, 900)], [Value::Null, Value::Null]);
    assert_eq!(editor.leave(), 0);
}

#[test]
fn other_files_and_the_settings_of_the_project_matter() {
    let losses =
        "import torch.nn.functional as F\n\ndef loss_of(model, x):\n    return F.mse_loss(model(x), x)\n";
    let train = "\
import torch
from losses import loss_of

model = torch.nn.Linear(2, 2)
kept = []
for x in loader:
    kept.append(loss_of(model, x))
print(kept[-1].item())
";
    let settings = "[tool.vramscope.per-file-ignores]\n\"old.py\" = [\"LK102\"]\n";
    let dir = project(&[
        ("losses.py", losses),
        ("train.py", train),
        ("old.py", TRAIN),
        ("pyproject.toml", settings),
    ]);
    let (mut editor, _) = Editor::open(
        dir.path(),
        &json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } }),
    );
    let file = |name: &str| uri(&dir.path().join(name));
    editor.show(&file("train.py"), train);
    assert_eq!(editor.diagnostics(&file("train.py"), 1), ["6:4 2 LK102"]);
    assert_eq!(editor.asked[0].method, "client/registerCapability");
    editor.show(&file("old.py"), TRAIN);
    assert_eq!(editor.diagnostics(&file("old.py"), 1), [""; 0]);
    // What is open counts, not what is on disk.
    editor.show(&file("losses.py"), "def loss_of(model, x):\n    return 1.0\n");
    assert_eq!(editor.diagnostics(&file("train.py"), 1), [""; 0]);
    let closed = json!({ "textDocument": { "uri": file("losses.py") } });
    editor.tell("textDocument/didClose", closed);
    assert_eq!(editor.diagnostics(&file("train.py"), 1), ["6:4 2 LK102"]);
    std::fs::write(dir.path().join("pyproject.toml"), "[tool.vramscope]\nselect = [\"LK1\"\n").unwrap();
    let change = json!({ "changes": [{ "uri": file("pyproject.toml"), "type": 2 }] });
    editor.tell("workspace/didChangeWatchedFiles", change.clone());
    let message = editor.hear("window/showMessage");
    assert!(message["message"].as_str().unwrap().contains("\nhint: the keys are"), "{message}");
    assert_eq!(editor.diagnostics(&file("old.py"), 1), ["6:57 1 LK102"], "defaults hold");
    std::fs::write(dir.path().join("pyproject.toml"), "[tool.vramscope]\nexclude = [\"*.py\"]\n").unwrap();
    editor.tell("workspace/didChangeWatchedFiles", change);
    assert_eq!(editor.diagnostics(&file("old.py"), 1), [""; 0]);
    assert_eq!(editor.leave(), 0);
}

#[test]
fn cells_of_notebooks_are_documents() {
    let dir = project(&[]);
    let (mut editor, answer) = Editor::open(dir.path(), &json!({ "textDocument": { "diagnostic": {} } }));
    assert!(answer["capabilities"]["notebookDocumentSync"].is_object());
    let lines: Vec<&str> = TRAIN.split_inclusive('\n').collect();
    let cell = |name: &str| format!("vscode-notebook-cell:/n.ipynb#{name}");
    let text = |name: &str, text: &str| json!({ "uri": cell(name), "languageId": "python", "version": 1, "text": text });
    let kinds = [("a", 2), ("words", 1), ("magic", 2), ("b", 2)];
    let cells: Vec<Value> =
        kinds.map(|(name, kind)| json!({ "kind": kind, "document": cell(name) })).to_vec();
    let notebook = json!({ "uri": uri(dir.path()) + "/n.ipynb", "notebookType": "jupyter-notebook", "version": 1, "cells": cells });
    let (first, second) = (lines[..5].concat(), lines[5..].concat());
    let texts = [
        text("a", &first),
        json!({ "uri": cell("words"), "languageId": "markdown", "version": 1, "text": "words" }),
        text("magic", "%%bash\necho"),
        text("b", &second),
    ];
    editor.tell(
        "notebookDocument/didOpen",
        json!({ "notebookDocument": notebook, "cellTextDocuments": texts }),
    );
    assert_eq!(editor.diagnostics(&cell("b"), 1), ["1:57 1 LK102"]);
    let actions = editor.actions(&cell("b"), 1, &json!(["quickfix"]));
    let edit = &actions[0]["edit"]["changes"][&cell("b")][0];
    assert_eq!((&edit["range"], &edit["newText"]), (&range((1, 75), (1, 75)), &json!(".detach()")));
    // A cell comes in front, and the text of the last one changes.
    let change = json!({ "cells": {
        "structure": {
            "array": { "start": 0, "deleteCount": 0, "cells": [{ "kind": 2, "document": cell("new") }] },
            "didOpen": [text("new", "x = 1")],
        },
        "textContent": [{
            "document": { "uri": cell("b"), "version": 2 },
            "changes": [{ "range": range((0, 0), (0, 0)), "text": "# 𝄞\n" }],
        }],
    }});
    let notebook = json!({ "uri": uri(dir.path()) + "/n.ipynb", "version": 2 });
    editor.tell("notebookDocument/didChange", json!({ "notebookDocument": notebook, "change": change }));
    assert_eq!(editor.diagnostics(&cell("b"), 2), ["2:57 1 LK102"]);
    editor
        .tell("notebookDocument/didClose", json!({ "notebookDocument": notebook, "cellTextDocuments": [] }));
    let closed = editor.hear("textDocument/publishDiagnostics");
    assert_eq!((&closed["uri"], &closed["diagnostics"]), (&json!(cell("b")), &json!([])));
    assert_eq!(editor.leave(), 0);
}

#[test]
fn nothing_that_is_sent_brings_it_down() {
    let dir = project(&[("train.py", TRAIN)]);
    let mut early = Editor::start();
    assert_eq!(early.ask("textDocument/hover", json!({})), Err(-32002));
    early.tell("textDocument/didOpen", json!({}));
    assert_eq!(early.ask("initialize", json!({ "capabilities": 3 })), Err(-32602));
    let (mut editor, _) = Editor::open(dir.path(), &json!({}));
    assert_eq!(editor.ask("initialize", json!({ "capabilities": {} })), Err(-32600));
    assert_eq!(editor.ask("textDocument/rename", json!({})), Err(-32601));
    assert_eq!(editor.ask("textDocument/codeAction", json!([1])), Err(-32602));
    let input = editor.input.as_mut().unwrap();
    input.write_all(b"Content-Length: 5\r\n\r\n{\"id\"").unwrap();
    input.write_all(b"Content-Length: 9\r\n\r\n{\"id\":\"x\"").unwrap();
    input.write_all("Content-Length: 2\r\nContent-Type: é\r\n\r\n[]".as_bytes()).unwrap();
    for method in ["didOpen", "didChange", "didClose", "didSave", "what"] {
        editor.tell(&format!("textDocument/{method}"), json!({ "textDocument": 7 }));
    }
    let file = uri(&dir.path().join("train.py"));
    let change = |uri: &str, text: &str| {
        let far = range((u32::MAX, u32::MAX), (0, u32::MAX));
        json!({
            "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "range": far, "text": text }],
        })
    };
    editor.tell("textDocument/didChange", change(&file, "x"));
    for odd in ["untitled:Untitled-1", "file:///%FF/%00.py", "file:", "git:/a.py?x#y"] {
        editor.show(odd, TRAIN);
        assert_eq!(editor.diagnostics(odd, 1).len(), 1, "{odd}");
        editor.tell("textDocument/didChange", change(odd, "\u{0}"));
        assert_eq!(editor.diagnostics(odd, 2), ["0:0 3 -"], "{odd}");
    }
    editor.show(&file, TRAIN);
    let huge = "y = '𝄞'\r\n".repeat(200_000);
    editor.tell("textDocument/didChange", change(&file, &huge));
    assert_eq!(editor.diagnostics(&file, 2), [""; 0]);
    let far =
        json!({ "textDocument": { "uri": file }, "position": { "line": u32::MAX, "character": u32::MAX } });
    assert_eq!(editor.ask("textDocument/hover", far), Ok(Value::Null));
    assert_eq!(editor.leave(), 0);
}

#[test]
fn it_ends_when_the_client_does() {
    let dir = project(&[]);
    let status = |end: fn(&mut Editor)| {
        let (mut editor, _) = Editor::open(dir.path(), &json!({}));
        end(&mut editor);
        editor.child.wait().unwrap().code().unwrap()
    };
    assert_eq!(status(|editor| editor.tell("exit", Value::Null)), 1);
    assert_eq!(status(|editor| drop(editor.input.take())), 1);
    assert_eq!(status(|editor| editor.input.as_mut().unwrap().write_all(b"hello\r\n").unwrap()), 2);
    let (mut editor, _) = Editor::open(dir.path(), &json!({}));
    editor.ask("shutdown", Value::Null).unwrap();
    drop(editor.input.take());
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));
}

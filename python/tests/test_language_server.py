"""`vramscope lsp` with the client of another project."""

import asyncio
import sys

import pytest

pytest.importorskip("pygls", reason="a client of language servers")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

TRAIN = """\
import torch
import torch.nn.functional as F

model = torch.nn.Linear(2, 2)
losses = []
for batch in loader:
    loss = F.mse_loss(model(batch), batch); name = '𝄞'; losses.append(loss)
print(losses[-1].item())
"""
FIXED = TRAIN.replace("append(loss)", "append(loss.detach())")


class Editor(LanguageClient):
    """A client that knows how its server ended."""

    def __init__(self):
        super().__init__("editor", "1")
        self.ended = asyncio.Queue()

    async def server_exit(self, server):
        self.ended.put_nowait(server.returncode)


def capabilities(encodings, pulls):
    """What an editor says that it can."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=encodings),
        workspace=types.WorkspaceClientCapabilities(workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)),
        text_document=types.TextDocumentClientCapabilities(
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
            diagnostic=types.DiagnosticClientCapabilities() if pulls else None,
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True),
        ),
    )


async def converse(path, pulls):
    """Opens a file, takes its fix and leaves; gives what was found, the texts after the actions, a page and the exit status."""
    client = Editor()
    published = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    async def publish(params):
        await published.put(params)

    await client.start_io(sys.executable, "-m", "vramscope", "lsp")
    encodings = [types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf16]
    await client.initialize_async(
        types.InitializeParams(
            capabilities=capabilities(encodings, pulls),
            workspace_folders=[types.WorkspaceFolder(uri=path.parent.as_uri(), name="project")],
        )
    )
    client.initialized(types.InitializedParams())
    document = types.TextDocumentIdentifier(uri=path.as_uri())
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri=document.uri, language_id="python", version=1, text=TRAIN))
    )
    if pulls:
        found = (await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))).items
    else:
        found = (await asyncio.wait_for(published.get(), 60)).diagnostics
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(document, found[0].range, types.CodeActionContext(diagnostics=found))
    )
    hover = await client.text_document_hover_async(types.HoverParams(document, found[0].range.start))
    await client.shutdown_async(None)
    client.exit(None)
    status = await asyncio.wait_for(client.ended.get(), 60)
    await client.stop()
    return found, {action.title: edited(TRAIN, action.edit) for action in actions}, hover.contents.value, status


def edited(text, edit):
    """A text after an edit, whose columns are units of UTF-16."""
    lines = text.splitlines(keepends=True)
    for change in edit.document_changes[0].edits:
        line = change.range.start.line
        units = lines[line].encode("utf-16-le")
        start, end = 2 * change.range.start.character, 2 * change.range.end.character
        lines[line] = (units[:start] + change.new_text.encode("utf-16-le") + units[end:]).decode("utf-16-le")
    return "".join(lines)


@pytest.mark.parametrize("pulls", [False, True])
def test_what_is_found_is_shown_and_fixed(tmp_path, pulls):
    path = tmp_path / "train.py"
    path.write_text(TRAIN, encoding="utf-8")
    found, texts, page, status = asyncio.run(converse(path, pulls))
    assert [(it.code, it.source, it.severity) for it in found] == [("LK102", "vramscope", types.DiagnosticSeverity.Error)]
    assert found[0].range.start == types.Position(6, 57)
    assert found[0].related_information[0].location.range.start.line == 5
    assert texts["LK102: add `.detach()`, which lets go of the graph"] == FIXED
    assert texts["vramscope: make all safe fixes"] == FIXED
    assert texts["LK102: disable for this line"] == TRAIN.replace("append(loss)", "append(loss)  # vramscope: ignore[LK102]")
    assert page.startswith("# append-attached-tensor (LK102)")
    assert status == 0

"""The callback for Lightning, in trainings on the CPU."""

from __future__ import annotations

import csv
import json

import pytest
from recorded import Programs

pytest.importorskip("lightning")
pytest.importorskip("torch")

TRAIN = """
import time, torch, vramscope
import {lightning} as lightning
from vramscope.lightning import VramscopeCallback

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.outputs = torch.nn.Linear(64, 64), []

    def training_step(self, batch, number):
        time.sleep(0.01)
        self.outputs.append(self.net(batch))
        return self.outputs[-1].square().mean()

    def validation_step(self, batch, number):
        self.net(batch)

    test_step = predict_step = validation_step

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

def trainer(*callbacks, **settings):
    return lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=list(callbacks), **settings
    )

data = torch.utils.data.DataLoader(torch.randn(80, 64), batch_size=2)
module = Module()
"""

#: Several trainings in one process, as Lightning takes long to import.
TRAININGS = """
assert VramscopeCallback.__mro__[1] is lightning.Callback
trainer(VramscopeCallback(out="leak"), max_epochs=2, accumulate_grad_batches=2).fit(module, data, data)
print(vramscope.is_recording(), vramscope.stop())
module.outputs.clear()

class Failing(Module):
    def training_step(self, batch, number):
        if number == 20:
            raise ValueError("bad batch")
        return super().training_step(batch, number)

try:
    trainer(VramscopeCallback(out="failed"), max_epochs=1).fit(Failing(), data)
except ValueError as error:
    print(error, vramscope.is_recording())

class Stop(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        trainer.should_stop = trainer.global_step >= 5

trainer(Stop(), VramscopeCallback(out="quiet", quiet=True), max_epochs=1).fit(module, data)
print(vramscope.is_recording())

vramscope.start(out="phases", quiet=True)
last = trainer(VramscopeCallback(out="never"), max_steps=4)
last.fit(module, data)
last.test(module, data, verbose=False)
last.predict(module, data, return_predictions=False)
last.validate(module, data, verbose=False)
print(vramscope.is_recording(), vramscope.stop() is not None)
"""


class Recording:
    """What was recorded into a directory."""

    def __init__(self, programs, out):
        self.where = programs.directory / out / "latest"
        self.events = [json.loads(line) for line in (self.where / "events.jsonl").read_text().splitlines()]
        self.end = {name: self.events[-1][name] for name in ("event", "reason", "steps", "source")}
        self.phases = [(event["event"], event["phase"], event["step"]) for event in self.events if "phase" in event]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("trainings"), fake=False)
    programs.write(TRAIN.format(lightning="lightning.pytorch") + TRAININGS)
    programs.ended = programs.plain("train.py")
    assert programs.ended.status == 0, programs.ended.err
    return programs


def test_each_recording_ends_with_its_training(trained):
    assert trained.ended.out.decode().splitlines() == ["False None", "bad batch False", "False", "True True"]


def test_steps_are_those_of_the_optimizer(trained):
    recording = Recording(trained, "leak")
    # A step for two batches: 40 batches in each of two epochs.
    assert recording.end == {"event": "ended", "reason": "stop", "steps": 40, "source": "explicit"}
    with open(recording.where / "statistics.csv", newline="") as file:
        numbers = [int(row["step"]) for row in csv.DictReader(file) if row["source"] == "explicit"]
    assert numbers == sorted(set(numbers)) and len(numbers) > 1 and numbers[-1] <= 40
    # The sanity check of Lightning is one as well, before the first step.
    began = [step for event, phase, step in recording.phases if (event, phase) == ("phase-began", "validation")]
    assert began[-2:] == [20, 40] and len(began) <= 3


def test_the_leak_is_named_and_said_once(trained):
    err = trained.ended.err
    assert err.count("vramscope: recorded in leak/") == 1
    assert "\nGROWING  memory grows by " in err and err.count("\n1  growing  __main__.module.outputs[*]") == 1
    assert err.index("`max_epochs=2` reached") < err.index("GROWING")


def test_a_training_that_fails_ends_its_recording(trained):
    recording = Recording(trained, "failed")
    assert recording.end == {"event": "ended", "reason": "stop", "steps": 20, "source": "explicit"}
    assert trained.ended.err.count("vramscope: recorded in failed/") == 1
    names = [file.name for file in recording.where.glob("snapshot*.holders.json")]
    assert len(names) == 1, "what was held when it failed"


def test_settings_are_those_of_start(trained):
    assert Recording(trained, "quiet").end["steps"] == 5
    assert "recorded in quiet" not in trained.ended.err and "recorded in phases" not in trained.ended.err


def test_tests_and_predictions_are_phases(trained):
    assert not (trained.directory / "never").exists()
    found = [(event, name) for event, name, _ in Recording(trained, "phases").phases]
    assert found == [(event, name) for name in ("test", "predict", "validation") for event in ("phase-began", "phase-ended")]


def test_under_run_it_only_marks(tmp_path):
    programs = Programs(tmp_path, fake=False)
    # The package as it was called before.
    programs.write(
        TRAIN.format(lightning="pytorch_lightning")
        + """
assert VramscopeCallback.__mro__[1] is lightning.Callback
trainer(VramscopeCallback(out='elsewhere'), max_steps=30).fit(module, data)
print(vramscope.is_recording())
"""
    )
    got = programs.recorded("train.py")
    assert (got.status, got.out) == (0, b"True\n"), got.err
    assert not (programs.directory / "elsewhere").exists()
    assert Recording(programs, ".vramscope").end == {"event": "ended", "reason": "exit", "steps": 30, "source": "explicit"}
    assert got.err.count("vramscope: recorded in .vramscope/") == 1


def test_without_lightning_it_says_what_to_do(tmp_path):
    programs = Programs(tmp_path, fake=False)
    programs.write("import sys\nsys.modules['lightning'] = sys.modules['pytorch_lightning'] = None\nimport vramscope.lightning")
    assert programs.plain("train.py").err.endswith("ImportError: Lightning is not installed; hint: `pip install lightning`\n")

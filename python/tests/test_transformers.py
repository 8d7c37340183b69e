"""The callback for the Trainer of transformers, with a model made from its configuration, on the CPU."""

from __future__ import annotations

import pytest
from recorded import Programs

pytest.importorskip("transformers", reason="python/tests/requirements.txt has it for Python 3.11 and later")
pytest.importorskip("accelerate")
pytest.importorskip("torch")

TRAIN = """
import time, torch, vramscope
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from vramscope.transformers import VramscopeCallback

config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16
)
data = [dict(input_ids=torch.randint(0, 50, (8,)), labels=torch.tensor(i % 2)) for i in range(64)]
kept = []

class Leaking(Trainer):
    def compute_loss(self, model, inputs, **more):
        time.sleep(0.01)
        kept.append(torch.zeros(1000))
        return super().compute_loss(model, inputs, **more)

def trainer(*callbacks, **settings):
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=2, report_to=[], use_cpu=True, save_strategy="no", logging_strategy="no",
        disable_tqdm=True, **settings
    )
    model = BertForSequenceClassification(config)
    return Leaking(model=model, args=arguments, train_dataset=data, eval_dataset=data[:20], callbacks=list(callbacks))
"""


@pytest.fixture
def programs(tmp_path):
    made = Programs(tmp_path, fake=False)
    made.env.update(HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "hub"), TOKENIZERS_PARALLELISM="false")
    return made


def ended(programs):
    """The last thing that the recorder did."""
    return {name: fact for name, fact in programs.events()[-1].items() if name in ("event", "reason", "steps", "source")}


def phases(programs):
    return [(event["event"], event["phase"], event["step"]) for event in programs.events() if "phase" in event]


def test_a_training_is_recorded_and_its_leak_is_named(programs):
    programs.write(
        TRAIN
        + """
trainer(VramscopeCallback, num_train_epochs=2, gradient_accumulation_steps=2, eval_strategy="epoch").train()
print(vramscope.is_recording())
"""
    )
    got = programs.plain("train.py")
    assert (got.status, got.out.splitlines()[-1]) == (0, b"False"), got.err
    # A step for two batches: 32 batches in each of two epochs.
    assert ended(programs) == {"event": "ended", "reason": "stop", "steps": 32, "source": "explicit"}
    numbers = [int(row["step"]) for row in programs.rows() if row["source"] == "explicit"]
    assert numbers == sorted(set(numbers)) and len(numbers) > 1 and numbers[-1] <= 32
    assert phases(programs) == [(what, "evaluation", step) for step in (16, 32) for what in ("phase-began", "phase-ended")]
    assert got.err.count("vramscope: recorded in .vramscope/") == 1
    assert "\nGROWING  memory grows by " in got.err and got.err.count("\n1  growing  __main__.kept[*]") == 1


def test_under_run_it_only_marks(programs):
    programs.write(
        TRAIN
        + """
the = trainer(VramscopeCallback(out="elsewhere"), max_steps=10, eval_strategy="steps", eval_steps=5)
the.train()
the.evaluate()
the.predict(data[:4])
print(vramscope.is_recording())
"""
    )
    got = programs.recorded("train.py")
    assert (got.status, got.out.splitlines()[-1]) == (0, b"True"), got.err
    assert not (programs.directory / "elsewhere").exists()
    assert ended(programs) == {"event": "ended", "reason": "exit", "steps": 10, "source": "explicit"}
    assert phases(programs) == [(what, "evaluation", step) for step in (5, 10, 10, 10) for what in ("phase-began", "phase-ended")]
    assert got.err.count("vramscope: recorded in .vramscope/") == 1


def test_without_transformers_it_says_what_to_do(programs):
    programs.write("import sys\nsys.modules['transformers'] = None\nimport vramscope.transformers")
    assert programs.plain("train.py").err.endswith("ImportError: transformers is not installed; hint: `pip install transformers`\n")

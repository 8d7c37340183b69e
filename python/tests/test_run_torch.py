"""Steps of real programs, with the torch that is installed. No device is needed."""

from __future__ import annotations

import json

import pytest

pytest.register_assert_rewrite("recorded")
pytest.importorskip("torch")

from recorded import Programs


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path, fake=False)


def ended(programs, part=""):
    event = programs.events(part)[-1]
    return event["source"], event["steps"]


HEAD = """
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
def loss():
    return model(torch.ones(4, 8)).sum()
def train():
    optimizer.zero_grad(); loss().backward(); optimizer.step()
"""


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("for _ in range(20): train()", ("optimizer", 20)),
        ("for _ in DataLoader(torch.ones(20, 8), batch_size=2): train()", ("optimizer", 10)),
        ("for _ in DataLoader(torch.ones(20, 8), batch_size=2): loss()", ("loader", 10)),
        ("for _ in DataLoader(torch.ones(20, 8), num_workers=2): loss()", ("loader", 20)),
        ("for _ in range(20): loss().backward()", ("backward", 20)),
        ("for _ in range(5): torch.autograd.grad(loss(), model.weight)", ("backward", 5)),
        ("import vramscope\nfor _ in range(5): train(); vramscope.step()", ("explicit", 5)),
        ("other = torch.optim.SGD(model.parameters())\nfor _ in range(5): train(); other.step(); other.step()", ("optimizer", 5)),
        (
            "s = torch.amp.GradScaler('cpu')\nfor _ in range(5): s.scale(loss()).backward(); s.step(optimizer); s.update()",
            ("optimizer", 5),
        ),
    ],
)
def test_what_a_step_is(programs, body, want):
    programs.write("", "train.py")
    (programs.directory / "train.py").write_text(HEAD + body + "\n")
    got = programs.recorded("train.py")
    assert (got.status, got.out) == (0, b""), got.err
    assert ended(programs) == want


def test_compiled_programs_compile_as_without(programs):
    programs.write("")
    (programs.directory / "train.py").write_text(
        HEAD
        + """
from torch._dynamo.utils import counters
step = torch.compile(optimizer.step, backend="eager")
run = torch.compile(lambda: model(torch.ones(4, 8)).sum(), backend="eager", fullgraph=True)
for _ in range(3):
    optimizer.zero_grad(); run().backward(); step()
print(sorted(counters["graph_break"].values()), counters["stats"]["unique_graphs"])
"""
    )
    # What torch logs has times in it.
    want, got = programs.plain("train.py"), programs.recorded("train.py", options=("--quiet",))
    assert (got.status, got.out) == (want.status, want.out)
    assert ended(programs)[1] >= 3


def test_an_error_in_a_collate_function_or_a_backward_pass_shows_no_frame_of_ours(programs):
    programs.write("")
    (programs.directory / "train.py").write_text(
        HEAD
        + """
import traceback
def collate(batch):
    raise ValueError("in collate")
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("in backward")
works = (
    lambda: next(iter(DataLoader([1], collate_fn=collate))),
    lambda: Wrong.apply(loss()).backward(),
    lambda: model(torch.ones(4, 8)).backward(),
)
for work in works:
    try:
        work()
    except Exception:
        traceback.print_exc()
"""
    )
    err = programs.same("train.py").err
    assert "in collate" in err and "in backward" in err and "vramscope" not in err


def test_torchrun(programs):
    programs.write("")
    (programs.directory / "train.py").write_text(
        HEAD
        + """
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(model)
for _ in range(20):
    train()
dist.destroy_process_group()
"""
    )
    launch = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    for command in (
        lambda: programs.plain(*launch, "-m", "vramscope", "run", "train.py"),
        lambda: programs.recorded(*launch, "train.py"),
    ):
        got = command()
        assert got.status == 0, got.err
        assert [ended(programs, part) for part in ("rank0", "rank1")] == [("optimizer", 20)] * 2
        assert got.err.count("vramscope: recorded in") == 1
        assert set(programs.files()) == {"environment.json", "rank0", "rank1", "report.txt"}


def test_without_a_device_holders_are_looked_for_ever_more_rarely(programs):
    body = "import time\nkept = []\nfor _ in range(400): train(); kept.append(torch.ones(1 << 12)); time.sleep(0.01)\n"
    (programs.directory / "train.py").write_text(HEAD + body)
    programs.recorded("train.py", options=("--steps", "10"))
    looks = sorted(int(name.split(".")[1][4:]) for name in programs.files() if name.startswith("look"))
    assert looks and all(later >= 2 * earlier for earlier, later in zip([10, *looks], looks)), looks
    for name in programs.files():
        if name.endswith(".holders.json"):
            saved = json.loads((programs.recording / name).read_text())
            assert saved["step_source"] == "optimizer"
            held = next((row["blocks"] for row in saved["holders"] if row["path"] == "__main__.kept[*]"), 0)
            # The optimizer's step comes before what the loop does after it.
            assert held in (saved["step"] - 1, saved["step"]), name
    report = (programs.recording / "report.txt").read_text()
    assert "GROWING" in report and "__main__.kept[*]" in report

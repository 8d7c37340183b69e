"""Beam-search nodes with parent and child links: cycles that only Python's own generational collector frees, now and then."""
import torch, probe

device = "cuda"


class Beam:
    def __init__(self, state, parent=None):
        self.state, self.parent, self.children = state, parent, []
        if parent is not None:
            parent.children.append(self)  # LEAK


def search(embedding, depth=3):
    root = node = Beam(embedding)
    for _ in range(depth):
        node = Beam(torch.tanh(node.state * 1.01), node)  # ALLOC
    return node.state.mean().item()


records = []
probe.start()
for i in range(probe.steps(240)):
    score = search(torch.randn(128, 1024, device=device))  # ALLOC
    records.append({"step": i, "tokens": [[t, t + 1] for t in range(20)], "score": score})
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle")

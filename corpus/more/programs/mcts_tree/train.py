"""Search trees with parent links: a game's tree is garbage at its end, but only Python's collector, run by itself, frees it."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(16)
net = nn.Linear(256, 256).cuda()


class Node:
    def __init__(self, state, parent=None):
        self.state, self.parent, self.children = state, parent, []
        self.stats = [[0, 0.0] for _ in range(60)]

    def expand(self):
        child = Node(torch.tanh(net(self.state)), self)  # ALLOC
        self.children.append(child)  # LEAK
        return child


probe.start()
n = 0
with torch.no_grad():
    for game in range(24):
        root = Node(torch.randn(128, 256, device="cuda"))  # ALLOC
        nodes = [root]
        for move in range(10):
            nodes.append(rng.choice(nodes).expand())
            nodes[-1].state.mean().item()
            probe.step(n)
            n += 1
            if n in (80, 160, 240):
                probe.snap(f"step{n}")
probe.done(kind="reference-cycle")

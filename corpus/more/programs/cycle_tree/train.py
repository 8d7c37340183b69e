"""Search trees whose children know their parents: freed only when Python's own collector runs."""
import torch, probe

device = "cuda"


class Node:
    def __init__(self, state, parent=None):
        self.state = state
        self.parent = parent  # LEAK
        self.children = []

    def expand(self, width):
        for _ in range(width):
            child = Node(self.state + torch.randn_like(self.state), self)  # ALLOC
            self.children.append(child)
        return self.children


def search(root, depth=2, width=3):
    level = [root]
    for _ in range(depth):
        level = [child for node in level for child in node.expand(width)]
    return max(level, key=lambda node: node.state.sum().item())


def main():
    probe.start()
    for i in range(probe.steps(120)):
        best = search(Node(torch.zeros(128, 512, device=device)))
        del best
        probe.step(i)
        if i in (29, 59, 89, 119):
            probe.snap(f"step{i + 1}")
    probe.done(kind="reference-cycle")


main()

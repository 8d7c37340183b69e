"""After each evaluation that improved, the weights are deep-copied and appended; only the last is ever used."""
import copy, torch, probe
import torch.nn as nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.best = []

    def train_step(self):
        x = torch.randn(64, 512, device="cuda")
        loss = nn.functional.mse_loss(self.model(x), x.roll(1, -1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def evaluate(self):
        self.best.append(copy.deepcopy(self.model.state_dict()))  # LEAK ALLOC

    def fit(self, steps):
        for i in range(steps):
            self.train_step()
            if i % 20 == 19:
                self.evaluate()
            probe.step(i)
            if i in (69, 129, 189):
                probe.snap(f"step{i + 1}")


if __name__ == "__main__":
    probe.start()
    Trainer().fit(probe.steps(190))
    probe.done(kind="weights-copies")

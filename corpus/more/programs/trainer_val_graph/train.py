"""Validation without no_grad inside a trainer; `history += [loss]` keeps every graph."""
import torch, probe
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(256, 1024)
        self.down = nn.Linear(1024, 256)

    def forward(self, x):
        h = self.up(x)  # ALLOC
        h = nn.functional.gelu(h)  # ALLOC
        return self.down(h)  # ALLOC


class Trainer:
    def __init__(self, net):
        self.net, self.val_history = net, []
        self.optimizer = torch.optim.Adam(net.parameters())

    def loss(self, x):
        return nn.functional.l1_loss(self.net(x), x)

    def training_step(self, x):
        loss = self.loss(x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def validate(self):
        self.net.eval()
        for _ in range(4):
            x = torch.randn(256, 256, device="cuda")
            self.val_history += [self.loss(x)]  # LEAK
        self.net.train()


def main():
    trainer = Trainer(Net().cuda())
    for i in range(probe.steps(150)):
        trainer.training_step(torch.randn(256, 256, device="cuda"))
        if i % 15 == 14:
            trainer.validate()
        probe.step(i)
        if i in (49, 99, 149):
            probe.snap(f"step{i + 1}")


probe.start()
main()
probe.done(kind="graph-in-list")

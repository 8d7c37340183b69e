"""Every forward registers its statistics as a fresh buffer under a new name; the module's buffer dict never shrinks."""
import torch, probe
import torch.nn as nn


class Monitored(nn.Module):
    def __init__(self, dim=4096):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.seen = 0

    def forward(self, x):
        h = torch.relu(self.linear(x))
        peak = h.detach().amax(0)  # ALLOC
        self.register_buffer(f"peak_{self.seen}", peak, persistent=False)  # LEAK
        self.seen += 1
        return h


def main():
    model = Monitored().cuda()
    head = nn.Linear(4096, 10).cuda()
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=1e-3, momentum=0.9)
    for i in range(probe.steps(150)):
        x = torch.randn(64, 4096, device="cuda")
        loss = head(model(x)).logsumexp(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probe.step(i)
        if i in (49, 99, 149):
            probe.snap(f"step{i + 1}")


probe.start()
main()
probe.done(kind="module-buffers")

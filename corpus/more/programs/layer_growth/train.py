"""Progressive stacking: a layer is added at steps 60 and 120. Three bursts of parameters and moments, no leak."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Stack(nn.Module):
    def __init__(self, dim=1024):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList([nn.Linear(dim, dim)])

    def grow(self):
        layer = nn.Linear(self.dim, self.dim, device=device)
        self.layers.append(layer)
        return layer

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


model = Stack().to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
probe.start()
for i in range(probe.steps(180)):
    if i in (60, 120):
        optimizer.add_param_group({"params": list(model.grow().parameters())})
    x = torch.randn(64, 1024, device=device)
    loss = nn.functional.mse_loss(model(x), 2 * x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i, layers=len(model.layers))
    if i in (50, 110, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

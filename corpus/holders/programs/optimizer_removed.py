"""The head is replaced in each phase; the optimizer never forgets the old ones."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(512, 512, bias=False)

    def forward(self, x):
        return self.head(x).square().mean()


model = Model().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
for phase in range(12):
    if phase:
        model.head = nn.Linear(512, 512, bias=False).to(DEVICE)
        optimizer.add_param_group({"params": model.head.parameters()})
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(16, 512, device=DEVICE)).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    step()
check()

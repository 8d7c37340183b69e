"""A recurrent policy keeps its hidden state on itself."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(64, 256)
        self.hidden = None

    def forward(self, obs):
        self.hidden = self.cell(obs, self.hidden)
        return self.hidden.argmax(1)


policy = Policy().to(DEVICE)
for i in range(30):
    action = policy(torch.randn(64, 64, device=DEVICE))
    step()
check()

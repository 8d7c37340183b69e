"""Tied weights count once."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4096, 256)
        self.out = nn.Linear(256, 4096, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(self.embed(ids))


model = LanguageModel().to(DEVICE)


def train_step():
    ids = torch.randint(0, 4096, (2, 16), device=DEVICE)
    nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()


for i in range(2):
    train_step()
    step()
expected = {"parameters": 4096 * 256 * 4, "gradients": 4096 * 256 * 4}
check()
print("expected", json.dumps(expected))

"""itertools.cycle(loader) keeps every batch of the first round."""
import builtins
import itertools
import os
import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Noise(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        return torch.randn(64, 1024, device=DEVICE)


batches = itertools.cycle(DataLoader(Noise(), batch_size=4))
for i in range(24):
    mean = next(batches).mean().item()
    step()
check()

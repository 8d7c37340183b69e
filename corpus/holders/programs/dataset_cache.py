"""A dataset caches every item it has ever made."""
import builtins
import os
import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Cached(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 24

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = torch.randn(256, 1024, device=DEVICE)
        return self.cache[i]


loader = DataLoader(Cached(), batch_size=None)
for batch in loader:
    batch.mean()
    step()
check()

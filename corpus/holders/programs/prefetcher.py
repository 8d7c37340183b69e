"""A prefetcher that runs much further ahead than it should."""
import builtins
import collections
import os
import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Noise(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        return torch.randn(64, 1024, device=DEVICE)


class Prefetcher:
    def __init__(self, loader, depth):
        self.source = iter(loader)
        self.ready = collections.deque()
        self.depth = depth

    def __iter__(self):
        return self

    def __next__(self):
        while len(self.ready) < self.depth:
            self.ready.append(next(self.source))
            step()
        return self.ready.popleft()


batches = Prefetcher(DataLoader(Noise(), batch_size=4), 24)
mean = next(batches).mean().item()
check()

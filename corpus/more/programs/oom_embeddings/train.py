"""Embeddings memoized by an ever-new key until the capped device is full."""
import os, torch, probe
import torch.nn as nn

device = "cuda"


class Memo:
    def __init__(self, encoder):
        self.encoder = encoder
        self.store = {}

    def __call__(self, key, batch):
        if key not in self.store:
            vectors = self.encoder(batch)  # ALLOC
            self.store[key] = vectors  # LEAK
        return self.store[key]


def on_oom(device, alloc, device_alloc, device_free):
    torch.cuda.memory._dump_snapshot(os.path.join(probe.OUT, "oom.pickle"))


def main():
    memo = Memo(nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 1024)).to(device))
    probe.start()
    torch.cuda.set_per_process_memory_fraction(0.016)
    torch._C._cuda_attach_out_of_memory_observer(on_oom)
    try:
        with torch.no_grad():
            for i in range(5000):
                batch = torch.randn(6000 + 500 * (i % 7), 128, device=device)
                memo((i // 7, i % 7), batch).sum()
                probe.step(i)
    except torch.OutOfMemoryError as e:
        open(os.path.join(probe.OUT, "oom.txt"), "w").write(str(e))
    probe.done(kind="unbounded-cache")


main()

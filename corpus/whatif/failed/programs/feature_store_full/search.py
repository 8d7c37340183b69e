"""Features of pictures of every size, kept in a bounded store, and large products over them, on a device that others have nearly filled."""
import random
import report
import torch

device = report.device
report.begin()
report.record(max_entries=200_000)
rng, store = random.Random(79), {}
project = torch.randn(768, 768, device=device)


def work():
    for i in range(90):
        for _ in range(5):
            key = rng.randrange(300)
            if key not in store:
                store[key] = torch.tanh(torch.randn(int(200 * 2 ** (rng.random() * 5.5)), 768, device=device) @ project)
            while sum(t.numel() * 4 for t in store.values()) > 420 << 20:
                store.pop(rng.choice(list(store)))
        picked = torch.cat([store[k] for k in rng.sample(list(store), min(len(store), 6))])
        near = picked[: 1000 + rng.randrange(4000)] @ picked[:6000].T
        near.softmax(-1).topk(5)
        del picked, near
        report.step(i)


try:
    work()
except torch.OutOfMemoryError as error:
    report.dump()
    report.done(error)
else:
    report.done()

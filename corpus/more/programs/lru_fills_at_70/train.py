"""An LRU cache of 70 entries that meets a new key every second step: full at 70 % of the run, then one in, one out."""
import collections, torch, probe

device = "cuda"


class LRU:
    def __init__(self, capacity):
        self.capacity, self.items = capacity, collections.OrderedDict()

    def get(self, key, make):
        if key in self.items:
            self.items.move_to_end(key)
            return self.items[key]
        value = self.items[key] = make(key)
        while len(self.items) > self.capacity:
            self.items.popitem(last=False)
        return value


def embed(document):
    generator = torch.Generator(device=device).manual_seed(document)
    return torch.randn(256, 1024, device=device, generator=generator)


cache = LRU(70)
projection = torch.randn(1024, 256, device=device)
probe.start()
for i in range(probe.steps(200)):
    document = cache.get(i // 2, embed)
    scores = (document @ projection).softmax(-1)
    scores.amax().item()
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")

"""Rotary tables memoized by length: full after half of the run, then constant. No leak."""
import functools, torch, probe

device = "cuda"


@functools.lru_cache(maxsize=64)
def rotary(length):
    angle = torch.outer(torch.arange(length, device=device), 10000 ** (-torch.arange(0, 128, 2, device=device) / 128))
    return torch.polar(torch.ones_like(angle), angle)


def attend(length):
    q = torch.randn(4, length, 64, 2, device=device)
    rotated = torch.view_as_complex(q) * rotary(length)
    return rotated.abs().sum().item()


probe.start()
for i in range(probe.steps(130)):
    attend(400 + 8 * (i % 90))
    probe.step(i, cached=rotary.cache_info().currsize)
    if i in (9, 39, 69, 99, 129):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")

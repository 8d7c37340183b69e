"""functools.cache over a finite set of keys drawn at random: births grow rarer, and past 70 % of the run there are none."""
import functools, random, torch, probe

device = "cuda"


@functools.cache
def relative_positions(window):
    d = torch.arange(window, device=device)
    return (d[:, None] - d[None, :]).float().abs_().neg_().exp_()


rng = random.Random(2)
windows = [256 + 16 * k for k in range(40)]
probe.start()
for i in range(probe.steps(240)):
    window = rng.choice(windows)
    bias = relative_positions(window)
    weights = torch.softmax(torch.randn(4, window, window, device=device) + bias, dim=-1)
    weights.sum().item()
    probe.step(i, cached=relative_positions.cache_info().currsize)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")

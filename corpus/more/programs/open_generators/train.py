"""Streams of tokens are generators; clients go away after the first chunk and nobody closes what they left."""
import torch, probe
import torch.nn as nn

model = nn.Linear(256, 256).cuda()


def stream(request):
    state = torch.randn(96, 256, device="cuda")  # ALLOC
    while True:
        state = torch.tanh(model(state))  # ALLOC
        yield state.mean().item()


sessions = {}
probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        s = stream(i)
        next(s)
        if i % 3 == 0:
            sessions[f"client-{i}"] = s  # LEAK
        else:
            next(s)
            s.close()
        probe.step(i)
        if i in (66, 133, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="generator")

"""Whole training steps captured as CUDA graphs for two batch sizes, sharing one pool. Nothing leaks."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
inputs = {size: torch.randn(size, 512, device=device) for size in (32, 96)}


def step(x):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    return loss


probe.start()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for x in inputs.values():
        for _ in range(3):
            step(x)
torch.cuda.current_stream().wait_stream(side)

captured, pool = {}, None
for size, x in inputs.items():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        loss = step(x)
    pool = graph.pool()
    captured[size] = graph, loss

for i in range(probe.steps(50)):
    size = (32, 96)[i % 2]
    inputs[size].copy_(torch.randn(size, 512, device=device))
    captured[size][0].replay()
    probe.step(i, loss=captured[size][1].item())
    if i in (4, 24, 49):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

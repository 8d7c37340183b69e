"""A notebook: cells are compiled under /tmp/ipykernel_…; the second cell keeps every output."""
import torch, probe

setup = """import torch
import torch.nn as nn
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
outputs = []
"""
loop = """for i in range(120):
    x = torch.randn(64, 512, device="cuda")
    y = model(x)
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(y.detach())
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
"""
namespace = {"probe": probe}
probe.start()
exec(compile(setup, "/tmp/ipykernel_4711/1804289383.py", "exec"), namespace)
exec(compile(loop, "/tmp/ipykernel_4711/846930886.py", "exec"), namespace)  # LEAK
probe.done(kind="notebook", alloc_lines=["846930886.py:3"])

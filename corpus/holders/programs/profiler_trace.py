"""Outputs kept while torch.profiler runs with memory events."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 4096)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept = []
activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if DEVICE == "cuda" else [])
with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as prof:
    for i in range(8):
        optimizer.zero_grad()
        out = model(torch.randn(16, 3, 32, 32, device=DEVICE))
        out.logsumexp(1).mean().backward()
        optimizer.step()
        kept.append(out)
        prof.step()
        step()
prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=5)
check()

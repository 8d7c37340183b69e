"""Data-parallel training where only the last rank leaks, on its logging branch."""
import builtins
import os
import torch
import torch.distributed as dist
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
dist.init_process_group("gloo", rank=rank, world_size=world, store=dist.HashStore() if world == 1 else None)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512, 256), nn.GELU(), nn.Linear(256, 512)).to(DEVICE))
optimizer = torch.optim.AdamW(model.parameters())
logged = []
for i in range(40):
    optimizer.zero_grad()
    out = model(torch.randn(128, 512, device=DEVICE))
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    if rank == world - 1:
        logged.append(out)
    step()
check()
dist.destroy_process_group()

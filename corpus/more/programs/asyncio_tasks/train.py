"""A server keeps its finished tasks in a list, and so their results."""
import asyncio, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
tasks = []


async def handle(request):
    x = torch.randn(128, 256, device="cuda")
    await asyncio.sleep(0)
    with torch.no_grad():
        y = model(x)  # ALLOC
    await asyncio.sleep(0)
    return y


async def serve():
    for i in range(probe.steps(100)):
        new = [asyncio.create_task(handle(i)) for _ in range(1 + i % 3)]
        tasks.extend(new)  # LEAK
        await asyncio.gather(*new)
        probe.step(i)
        if i in (32, 65, 99):
            probe.snap(f"step{i + 1}")


probe.start()
asyncio.run(serve())
probe.done(kind="tasks")

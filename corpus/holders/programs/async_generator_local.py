"""An async generator keeps its window."""
import asyncio
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


async def stream():
    window = []
    while True:
        window.append(torch.randn(256, 1024, device=DEVICE))
        await asyncio.sleep(0)
        yield window[-1].mean().item()


async def main():
    source = stream()
    values = []
    async for value in source:
        values.append(value)
        step()
        if len(values) == 24:
            break
    check()
    await source.aclose()


asyncio.run(main())

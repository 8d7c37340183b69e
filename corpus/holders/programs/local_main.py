"""Everything lives in main(), as in most scripts."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def main():
    model = nn.Linear(512, 512).to(DEVICE)
    outputs = []
    with torch.no_grad():
        for i in range(24):
            outputs.append(model(torch.randn(512, 512, device=DEVICE)))
            step()
    check()
    print(torch.stack([o.mean() for o in outputs]).mean().item())


if __name__ == "__main__":
    main()

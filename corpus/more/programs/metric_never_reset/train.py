"""torchmetrics' AUROC without thresholds keeps all predictions; compute() is called at each epoch's end, reset() never."""
import torch, probe
import torch.nn as nn
from torchmetrics.classification import BinaryAUROC


def main():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    auroc = BinaryAUROC().cuda()
    step = 0
    for epoch in range(8):
        for batch in range(20):
            x = torch.randn(16384, 64, device="cuda")
            y = torch.randint(0, 2, (16384,), device="cuda")  # ALLOC
            logits = model(x).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            auroc.update(logits.detach().sigmoid(), y)  # LEAK ALLOC
            probe.step(step)
            step += 1
            if step in (50, 110, 160):
                probe.snap(f"step{step}")
        auroc.compute().item()


probe.start()
main()
probe.done(kind="metric-state")

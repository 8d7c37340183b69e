"""Nine trials with models of different widths; the results keep each trainer 'for later'."""
import torch, probe
import torch.nn as nn


class Trial:
    def __init__(self, width, lr):
        self.model = nn.Sequential(nn.Linear(256, width), nn.GELU(), nn.Linear(width, 256)).cuda()  # ALLOC
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)

    def run(self, first):
        for i in range(first, first + 16):
            x = torch.randn(128, 256, device="cuda")
            loss = nn.functional.mse_loss(self.model(x), x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # ALLOC
            probe.step(i)
            if i in (41, 90, 143):
                probe.snap(f"step{i + 1}")
        return loss.item()


probe.start()
results = []
for t, width in enumerate((256, 512, 1024, 384, 2048, 768, 640, 1536, 896)):
    trial = Trial(width, 10.0 ** -(t % 4))
    results.append((trial.run(16 * t), trial))  # LEAK
probe.done(kind="kept-trainers")

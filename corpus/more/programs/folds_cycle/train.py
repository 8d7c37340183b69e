"""Cross-validation: each fold's trainer is caught in a cycle with its callbacks; gc.collect() after every fourth fold."""
import gc, torch, probe
import torch.nn as nn


class Callback:
    def __init__(self, trainer):
        self.trainer = trainer


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()  # ALLOC
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.callbacks = [Callback(self)]  # LEAK

    def fit(self, first):
        for i in range(first, first + 10):
            x = torch.randn(128, 256, device="cuda")
            loss = nn.functional.mse_loss(self.model(x), x)
            self.optimizer.zero_grad()
            loss.backward()  # ALLOC
            self.optimizer.step()  # ALLOC
            probe.step(i)
            if i in (65, 125, 195):
                probe.snap(f"step{i + 1}")


gc.collect()
gc.freeze()
gc.set_threshold(100000)
probe.start()
for fold in range(20):
    Trainer().fit(10 * fold)
    if fold % 4 == 3:
        gc.collect()
probe.done(kind="reference-cycle")

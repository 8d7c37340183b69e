"""Train, validate, keep the best weights: three epochs' worth of steps up and down and no leak."""
import copy, torch, probe
import torch.nn as nn

device = "cuda"
data = torch.randn(640, 1, 28, 28)
target = torch.randint(0, 10, (640,))
model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3872, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())
best, best_loss = None, float("inf")


def train_epoch():
    global n
    model.train()
    for a in range(0, 512, 32):
        x, y = data[a:a + 32].to(device), target[a:a + 32].to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        probe.step(n, phase="train")
        n += 1


@torch.no_grad()
def validate():
    model.eval()
    logits, labels = [], []
    for a in range(512, 640, 16):
        logits.append(model(data[a:a + 16].to(device)))
        labels.append(target[a:a + 16].to(device))
    return nn.functional.cross_entropy(torch.cat(logits), torch.cat(labels)).item()


probe.start()
n = 0
for epoch in range(7):
    train_epoch()
    loss = validate()
    if loss < best_loss:
        best, best_loss = copy.deepcopy(model.state_dict()), loss
    probe.step(n, phase="eval")
    n += 1
    if epoch in (0, 3, 6):
        probe.snap(f"epoch{epoch}")
probe.done(kind="none")

"""Every ten steps the validation images are segmented and their logits are kept for a report nobody writes."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Segmenter(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Conv2d(64, classes, 1)

    def forward(self, x):
        features = self.body(x)
        return self.head(features)  # ALLOC


model = Segmenter().to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
val_images = torch.randn(16, 3, 128, 128, device=device)
predictions = []


@torch.no_grad()
def evaluate():
    model.eval()
    score = 0.0
    for images in val_images.split(8):
        logits = model(images)
        predictions.append(logits)  # LEAK
        score += logits.softmax(1).amax(1).mean().item()
    model.train()
    return score


probe.start()
for i in range(probe.steps(200)):
    images = torch.randn(8, 3, 128, 128, device=device)
    labels = torch.randint(0, 21, (8, 32, 32), device=device)
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if i % 10 == 9:
        evaluate()
    probe.step(i)
    if i in (69, 139, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")

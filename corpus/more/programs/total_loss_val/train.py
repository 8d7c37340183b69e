"""`val_loss += loss` in validation without no_grad: every batch's graph hangs on the running sum."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))  # ALLOC
        x = torch.relu(self.conv2(x))  # ALLOC
        return self.fc(x.mean((2, 3)))


model = Classifier().to(device).eval()
probe.start()
val_loss = torch.zeros((), device=device)
for i in range(probe.steps(120)):
    images = torch.randn(8, 3, 64, 64, device=device)
    labels = torch.randint(0, 10, (8,), device=device)
    val_loss += nn.functional.cross_entropy(model(images), labels)  # LEAK
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="graph-retained")

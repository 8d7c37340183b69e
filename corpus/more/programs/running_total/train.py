"""The validation total is a tensor with a history: one sum that holds every batch's graph."""
import torch, torchvision, probe

device = "cuda"
model = torchvision.models.shufflenet_v2_x0_5(num_classes=20).to(device).eval()


def evaluate(batches):
    total = 0
    for i in range(batches):
        images = torch.randn(6, 3, 64, 64, device=device)
        labels = torch.randint(0, 20, (6,), device=device)
        logits = model(images)  # ALLOC
        total = total + torch.nn.functional.cross_entropy(logits, labels)  # LEAK
        probe.step(i)
        if i in (9, 19, 34):
            probe.snap(f"step{i + 1}")
    return total / batches


probe.start()
evaluate(probe.steps(35))
probe.done(kind="graph-retained")

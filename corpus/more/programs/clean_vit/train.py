"""A vision transformer in bfloat16 with cudnn autotuning. Nothing leaks."""
import torch, torchvision, probe

device = "cuda"
torch.backends.cudnn.benchmark = True
model = torchvision.models.VisionTransformer(image_size=64, patch_size=8, num_layers=4, num_heads=4, hidden_dim=192, mlp_dim=768, num_classes=10).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=80)
probe.start()
correct = 0
for i in range(probe.steps(80)):
    images = torch.randn(24, 3, 64, 64, device=device)
    labels = torch.randint(0, 10, (24,), device=device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    correct += (logits.argmax(1) == labels).sum().item()
    probe.step(i)
    if i in (0, 39, 79):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

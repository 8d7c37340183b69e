"""A gigabyte comes and goes at every step; every eighth step 48 KiB stay."""
import torch, probe

probe.start()
weights = [torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
norms = []
for i in range(probe.steps(160)):
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for w in weights:
        x = torch.nn.functional.silu(x @ w)
        x = x / x.float().std()
    row_norms = x.float()[:, :2].norm(dim=1)
    if i % 8 == 3:
        norms.append(x[:3, :8192].clone())  # LEAK ALLOC
    row_norms.sum().item()
    probe.step(i)
    if i in (52, 105, 159):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")

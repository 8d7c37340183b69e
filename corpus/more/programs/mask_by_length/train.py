"""A mask for each length is cached forever, and the curriculum lengthens the sequence at every step."""
import torch, probe
import torch.nn as nn

model = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
masks = {}


def causal(length):
    if length not in masks:
        masks[length] = torch.full((length, length), float("-inf"), device="cuda").triu_(1)  # LEAK ALLOC
    return masks[length]


probe.start()
for i in range(probe.steps(140)):
    length = 64 + 3 * i
    x = torch.randn(2, length, 128, device="cuda")
    loss = model(x, src_mask=causal(length)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (46, 93, 139):
        probe.snap(f"step{i + 1}")
probe.done(kind="unbounded-cache")

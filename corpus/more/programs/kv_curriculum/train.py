"""Clean: the context grows by 8 tokens at every step of a curriculum; each step's tensors go with the step."""
import torch, probe
import torch.nn as nn

embed = nn.Embedding(1000, 192).cuda()
block = nn.TransformerEncoderLayer(192, 4, 384, batch_first=True, dropout=0.0).cuda()
head = nn.Linear(192, 1000).cuda()
optimizer = torch.optim.AdamW([*embed.parameters(), *block.parameters(), *head.parameters()])
probe.start()
for i in range(probe.steps(120)):
    tokens = torch.randint(0, 1000, (4, 32 + 8 * i), device="cuda")
    logits = head(block(embed(tokens)))
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

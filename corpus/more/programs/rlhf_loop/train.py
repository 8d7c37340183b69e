"""Clean: 14 iterations of generating 10 to 40 tokens and one update; the last four rollouts are replayed."""
import collections, random, torch, probe
import torch.nn as nn

rng = random.Random(22)
embed = nn.Embedding(500, 128).cuda()
block = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda()
head = nn.Linear(128, 500).cuda()
params = [*embed.parameters(), *block.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(params)
rollouts = collections.deque(maxlen=4)
probe.start()
for i in range(probe.steps(14)):
    tokens = torch.randint(0, 500, (8, 4), device="cuda")
    with torch.no_grad():
        block.eval()
        for t in range(rng.randrange(10, 40)):
            logits = head(block(embed(tokens))[:, -1])
            tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], 1)
        block.train()
    rollouts.append((tokens, torch.randn(8, device="cuda")))
    for tok, reward in rollouts:
        logp = head(block(embed(tok[:, :-1]))).log_softmax(-1).gather(2, tok[:, 1:, None]).squeeze(2)
        loss = -(logp.sum(1) * reward).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    probe.step(i)
    if i in (4, 9, 13):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

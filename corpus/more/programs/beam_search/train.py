"""Clean: ten beam searches of various lengths; the cache is reordered at every token and dropped at the end. Snapshots within searches."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(4)
dim, beams, vocab = 256, 6, 1000
embed = nn.Embedding(vocab, dim).cuda()
proj = nn.Linear(dim, 3 * dim).cuda()
out = nn.Linear(dim, vocab).cuda()
n = 0


@torch.no_grad()
def search(length):
    global n
    tokens = torch.zeros(beams, 1, dtype=torch.long, device="cuda")
    scores = torch.zeros(beams, 1, device="cuda")
    keys = values = None
    for t in range(length):
        q, k, v = proj(embed(tokens[:, -1:])).chunk(3, -1)
        keys = k if keys is None else torch.cat([keys, k], 1)
        values = v if values is None else torch.cat([values, v], 1)
        h = torch.softmax(q @ keys.transpose(1, 2) / 16, -1) @ values
        total = scores + out(h[:, -1]).log_softmax(-1)
        top = total.view(-1).topk(beams)
        source = top.indices // vocab
        tokens = torch.cat([tokens[source], (top.indices % vocab)[:, None]], 1)
        keys, values, scores = keys[source], values[source], top.values[:, None]
        probe.step(n)
        n += 1
        if n in (90, 190, 300):
            probe.snap(f"step{n}")
    return tokens[0].tolist()


probe.start()
answers = []
while n < 310:
    answers.append(search(rng.randrange(20, 50)))
probe.done(kind="none")

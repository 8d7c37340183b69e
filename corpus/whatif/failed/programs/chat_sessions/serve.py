"""A server of chats: each session's cache grows in steps, sessions come and go. An observer takes the snapshot at the moment memory runs out."""
import random
import report
import torch

device = report.device
report.begin()
report.record(max_entries=100_000)
if report.recording and device == "cuda":
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: report.dump())
rng, heads, width = random.Random(67), 8, 64


class Session:
    def __init__(self, tokens):
        self.used, self.caches = tokens, [torch.zeros(2, heads, tokens + 256, width, dtype=torch.float16, device=device) for _ in range(4)]

    def answer(self, tokens):
        for n, cache in enumerate(self.caches):
            if self.used + tokens > cache.shape[2]:
                larger = torch.zeros(2, heads, (self.used + tokens) * 5 // 4, width, dtype=torch.float16, device=device)
                larger[:, :, : self.used] = cache[:, :, : self.used]
                self.caches[n] = cache = larger
            keys, values = cache[:, :, : self.used + tokens]
            query = torch.randn(heads, tokens, width, dtype=torch.float16, device=device)
            (query @ keys.transpose(1, 2)).float().softmax(-1).half() @ values
        self.used += tokens


@torch.no_grad()
def serve():
    sessions = []
    for i in range(260):
        if len(sessions) < 14 or rng.random() < 0.3:
            sessions.append(Session(rng.randrange(500, 9000)))
        while sum(s.used for s in sessions) > 90_000:
            sessions.pop(rng.randrange(len(sessions)))
        for session in rng.sample(sessions, min(3, len(sessions))):
            session.answer(rng.randrange(40, 900))
        report.step(i)


try:
    serve()
except torch.OutOfMemoryError as error:
    report.done(error)
else:
    report.done()

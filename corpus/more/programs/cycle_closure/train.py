"""A callback that refers to itself keeps its batch until the collector comes by."""
import gc, torch, probe

device = "cuda"


def schedule(batch):
    def retry(attempts=3):
        if attempts and batch.isnan().any():
            return retry(attempts - 1)  # LEAK
        return batch.mean()
    return retry


probe.start()
gc.collect()
for i in range(probe.steps(100)):
    batch = torch.randn(512, 768, device=device)  # ALLOC
    schedule(batch)()
    del batch
    if i % 25 == 24:
        gc.collect()
    probe.step(i)
    if i in (19, 23, 70, 99):
        probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle")

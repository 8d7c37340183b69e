"""Clean: log records keep the tensors of their arguments until the handler's buffer of 45 is flushed."""
import io, logging, logging.handlers, torch, probe
import torch.nn as nn

target = logging.StreamHandler(io.StringIO())
log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(45, target=target))
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
probe.start()
for i in range(probe.steps(210)):
    x = torch.randn(64, 512, device="cuda")
    y = model(x)
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.info("step %d loss %s first row %s", i, loss.detach(), y.detach()[0])
    probe.step(i)
    if i in (79, 139, 209):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

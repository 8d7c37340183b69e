"""LBFGS: the optimizer's state is nested lists."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(256, 256, bias=False).to(DEVICE)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=4)
x, y = torch.randn(64, 256), torch.randn(64, 256)
data = [x.to(DEVICE), y.to(DEVICE)]
del x, y


def closure():
    optimizer.zero_grad(set_to_none=True)
    loss = (model(data[0]) - data[1]).square().mean()
    loss.backward()
    return loss


def state_bytes(value, seen):
    if isinstance(value, torch.Tensor):
        seen[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    elif isinstance(value, dict):
        [state_bytes(v, seen) for v in value.values()]
    elif isinstance(value, (list, tuple)):
        [state_bytes(v, seen) for v in value]
    return seen


for i in range(3):
    optimizer.step(closure).item()
    step()
size = 256 * 256 * 4
seen = state_bytes(dict(optimizer.state), {})
for p in model.parameters():
    seen.pop(p.untyped_storage().data_ptr(), None), seen.pop(p.grad.untyped_storage().data_ptr(), None)
del p
expected = {"parameters": size, "gradients": size, "optimizer_state": sum(seen.values()), "user_held": 2 * 64 * 256 * 4}
check()
print("expected", json.dumps(expected))

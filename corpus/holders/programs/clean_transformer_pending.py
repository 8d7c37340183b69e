"""A 4-layer TransformerEncoder between forward and backward."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(DEVICE)
del layer


def forward():
    return model(torch.randn(16, 64, 128, device=DEVICE)).square().mean()


def count_saved():
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved = {}

    def pack(t):
        s = t.untyped_storage()
        if s.data_ptr() not in own:
            saved[s.data_ptr()] = s.nbytes()
        return t.detach()  # t itself would be a cycle with its grad_fn

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = forward()  # keeps what it saved, so that no address comes twice
    del loss
    return sum(saved.values())


expected = {"parameters": sum(p.numel() * p.element_size() for p in model.parameters()), "activations": count_saved(), "user_held": 4}
loss = forward()
step()
check()
loss.backward()
print("expected", json.dumps(expected))

"""A plug-in system runs the user's snippet with exec() under '<string>'; the snippet keeps its masks."""
import torch, probe
import torch.nn as nn

snippet = """
mask = (x.abs() > 1.5).float()
kept.append(mask)
x = x * mask
"""
code = compile(snippet, "<string>", "exec")
model = nn.Linear(512, 512).cuda()
plugin = {"kept": []}


def run_plugin(x):
    plugin["x"] = x
    exec(code, plugin)  # LEAK ALLOC
    return plugin["x"]


probe.start()
with torch.no_grad():
    for i in range(probe.steps(120)):
        x = run_plugin(torch.randn(128, 512, device="cuda"))
        model(x).sum().item()
        probe.step(i)
        if i in (39, 79, 119):
            probe.snap(f"step{i + 1}")
probe.done(kind="python-list")

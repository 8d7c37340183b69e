"""Clean: inference through a CUDA graph that is captured anew every 30 steps, when the weights change; the old one is dropped."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda().eval()
static_in = torch.randn(64, 512, device="cuda")


def capture():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(2):
            model(static_in)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        result = model(static_in)
    return graph, result


probe.start()
for i in range(probe.steps(180)):
    if i % 30 == 0:
        graph = result = None
        graph, result = capture()
    static_in.copy_(torch.randn(64, 512, device="cuda"))
    graph.replay()
    scores = result.softmax(-1)
    scores.amax(-1).sum().item()
    probe.step(i)
    if i in (49, 109, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")

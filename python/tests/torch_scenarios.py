"""Programs that hold memory in torch's C++ objects, each stopped in the middle: what it returns is what it holds on to."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SCENARIOS: dict[str, Callable[[], Any]] = {}


def scenario(build: Callable[[], Any]) -> Callable[[], Any]:
    SCENARIOS[build.__name__] = build
    return build


@scenario
def transformer() -> Any:
    """Between the forward and the backward pass."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 4)
    return model, model(torch.randn(8, 16, 64)).sum()


@scenario
def convolutions() -> Any:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    output = model(torch.randn(4, 3, 16, 16))
    return model, nn.functional.cross_entropy(output, torch.randint(0, 10, (4,)))


@scenario
def recurrent() -> Any:
    model = nn.LSTM(8, 16, num_layers=2, dropout=0.1)
    output, _ = model(torch.randn(12, 4, 8))
    cell = nn.GRUCell(16, 16)
    return model, cell, cell(output[-1]).sum()


@scenario
def checkpoint_not_reentrant() -> Any:
    model = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)) for _ in range(3))
    value = torch.randn(16, 32, requires_grad=True)
    for layer in model:
        value = checkpoint(layer, value, use_reentrant=False)
    return model, value.sum()


@scenario
def checkpoint_reentrant() -> Any:
    model = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)) for _ in range(3))
    value = torch.randn(16, 32, requires_grad=True)
    for layer in model:
        value = checkpoint(layer, value, use_reentrant=True)
    return model, value.sum()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(value, factor)
        ctx.kept = value + 1.0
        return value * factor

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        value, factor = ctx.saved_tensors
        return grad * factor, (grad * value).sum()


@scenario
def custom_function() -> Any:
    value = torch.randn(64, requires_grad=True)
    factor = torch.tensor(2.0, requires_grad=True)
    for _ in range(3):
        value = Scale.apply(value, factor)
    return value.sum()


@scenario
def create_graph() -> Any:
    """The gradient has a graph of its own."""
    value = torch.randn(32, requires_grad=True)
    loss = (value.exp() * value.sin()).sum()
    (grad,) = torch.autograd.grad(loss, value, create_graph=True)
    return value, grad.pow(2).sum()


@scenario
def backward_with_create_graph() -> Any:
    """A parameter, its gradient and the gradient's graph: a cycle of which Python sees nothing."""
    value = torch.randn(32, requires_grad=True)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (value.exp() * value).sum().backward(create_graph=True)
    return value


@scenario
def saved_on_cpu() -> Any:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    with torch.autograd.graph.save_on_cpu():
        return model, model(torch.randn(16, 32)).sum()


@scenario
def hooks_on_saved_tensors() -> Any:
    value = torch.randn(16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor.detach() * 1.0], lambda packed: packed[0]):
        return (value.exp() * value.cos()).sum()


@scenario
def views() -> Any:
    base = torch.randn(100, 100)
    leaf = torch.randn(8, 8, requires_grad=True)
    grown = leaf * 2.0
    return base[3], grown.view(-1)[5:20].reshape(3, 5).t(), grown.split(4), leaf.detach()


@scenario
def in_place() -> Any:
    value = torch.randn(8, 8, requires_grad=True).clone()
    value[0].mul_(3.0)
    value[:, 1].exp_()
    value.add_(1.0).sigmoid_()
    return value.sum()


@scenario
def hooks() -> Any:
    kept = torch.randn(10)
    value = torch.randn(10, requires_grad=True)
    output = value * 2.0
    output.register_hook(lambda grad: grad * kept)
    value.register_post_accumulate_grad_hook(lambda tensor: None)
    output.grad_fn.register_prehook(lambda grads: None)
    output.grad_fn.register_hook(lambda inputs, outputs: None)
    output.retain_grad()
    return output.sum()


@scenario
def double_backward() -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.Softplus(), nn.Linear(8, 1))
    inputs = torch.randn(4, 8, requires_grad=True)
    grads = torch.autograd.grad(model(inputs).sum(), inputs, create_graph=True)
    return model, ((grads[0].norm(dim=1) - 1) ** 2).mean()


@scenario
def lists_of_tensors() -> Any:
    values = [torch.randn(4, requires_grad=True) for _ in range(3)]
    index = torch.tensor([0, 2])
    stacked = torch.stack(values)
    return torch.einsum("ij,kj->ik", stacked, stacked)[index, index].sum(), torch.cat(values).prod(), torch._foreach_mul(values, values)


@scenario
def after_backward() -> Any:
    model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(3):
        loss = model(torch.randn(4, 16)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return model, optimizer, losses


@scenario
def graph_kept() -> Any:
    value = torch.randn(16, requires_grad=True)
    total = value.sum()
    for _ in range(10):
        total = total + (value * total).sigmoid().sum()
    total.backward(retain_graph=True)
    return value, total


@scenario
def several_outputs() -> Any:
    matrix = torch.randn(6, 6, requires_grad=True)
    left, values, right = torch.linalg.svd(matrix @ matrix)
    return left.sum() + values.sum(), right, torch.unbind(matrix * 2.0), torch.max(matrix * 3.0, dim=0)


@scenario
def sparse() -> Any:
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.randn(3, requires_grad=True)
    tensor = torch.sparse_coo_tensor(indices, values * 2.0, (2, 3))
    return tensor, torch.sparse.mm(tensor, torch.randn(3, 4)).sum(), torch.eye(4).to_sparse_csr()


@scenario
def embedding() -> Any:
    model = nn.Embedding(50, 16, sparse=True)
    model(torch.randint(0, 50, (8,))).pow(2).sum().backward()
    return model


@scenario
def scaled_attention() -> Any:
    query, key, value = (torch.randn(2, 4, 8, 16, requires_grad=True) for _ in range(3))
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True).sum()


class Labelled(torch.Tensor):
    """A subclass that has a tensor as an attribute."""


@scenario
def subclass() -> Any:
    tensor = torch.randn(4, 4).as_subclass(Labelled)
    tensor.label = torch.ones(3)
    return tensor, nn.Parameter(torch.randn(3, 3)), nn.Buffer(torch.randn(2)) if hasattr(nn, "Buffer") else None

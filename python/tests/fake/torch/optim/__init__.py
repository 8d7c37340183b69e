from torch.optim import optimizer as _optimizer

Optimizer = _optimizer.Optimizer
SGD = Optimizer

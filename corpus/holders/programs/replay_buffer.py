"""A replay buffer without its bound."""
import builtins
import collections
import os
import torch
from typing import NamedTuple

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Transition(NamedTuple):
    state: torch.Tensor
    action: int
    reward: float


class Agent:
    def __init__(self):
        self.memory = collections.deque()

    def observe(self, state, reward):
        self.memory.append(Transition(state, int(state[0, 0] > 0), reward))


agent = Agent()
for i in range(24):
    agent.observe(torch.randn(256, 1024, device=DEVICE), 1.0)
    step()
check()

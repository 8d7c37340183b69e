"""Episodes and their steps know each other; the collector is off."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Step:
    def __init__(self, episode, observation):
        self.episode = episode
        self.observation = observation


class Episode:
    def __init__(self):
        self.steps = []

    def add(self, observation):
        self.steps.append(Step(self, observation))


def play():
    episode = Episode()
    for _ in range(2):
        episode.add(torch.randn(128, 1024, device=DEVICE))
    return len(episode.steps)


gc.disable()
for i in range(20):
    play()
    step()
check()

"""A subclass of UserList."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Log(collections.UserList):
    def note(self, x):
        self.append(x)


log = Log()
for i in range(24):
    log.note(torch.randn(256, 1024, device=DEVICE))
    step()
check()

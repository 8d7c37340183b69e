"""Log records keep their arguments in a memory handler."""
import builtins
import logging
import logging.handlers
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
handler = logging.handlers.MemoryHandler(capacity=4)
logger = logging.getLogger("train")
logger.setLevel(logging.DEBUG)
logger.propagate = False
logger.addHandler(handler)
for i in range(24):
    logger.debug("step %d: %s", i, torch.randn(256, 1024, device=DEVICE))
    step()
check()
handler.buffer.clear()

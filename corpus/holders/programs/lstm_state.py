"""The LSTM's state tuple is carried from sequence to sequence."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
lstm = nn.LSTMCell(64, 256).to(DEVICE)
state = (torch.zeros(64, 256, device=DEVICE), torch.zeros(64, 256, device=DEVICE))
for i in range(30):
    state = lstm(torch.randn(64, 64, device=DEVICE), state)
    step()
check()

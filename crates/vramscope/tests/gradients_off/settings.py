import os
def apply(torch):
    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    torch.set_grad_enabled(os.environ["GRAD"] == "1")
def save(torch):
    torch.cuda.memory._dump_snapshot(os.environ["NAME"])

"""Detection targets cached on the side keep their masks; boxes and labels do not matter."""
import builtins
import os
import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Shapes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.randn(3, 64, 64), {"boxes": torch.rand(4, 4), "labels": torch.ones(4), "masks": torch.zeros(4, 256, 256, dtype=torch.uint8)}


def collate(batch):
    return tuple(zip(*batch))


seen = []


def to_device(target):
    moved = {k: v.to(DEVICE, non_blocking=True) for k, v in target.items()}
    seen.append(moved["masks"])
    return moved


if __name__ == "__main__":
    loader = DataLoader(Shapes(), batch_size=4, collate_fn=collate)
    for epoch in range(2):
        for images, targets in loader:
            images = [image.to(DEVICE) for image in images]
            targets = [to_device(t) for t in targets]
            step()
    check()

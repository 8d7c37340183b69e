"""A segmentation dataset remembers every mask that it ever moved to the GPU."""
import torch, torchvision, probe
from torch.utils.data import DataLoader, Dataset

device = "cuda"


class Cells(Dataset):
    def __init__(self, size=48):
        self.size = size
        self.masks = []

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        image = torch.randn(3, 96, 96)
        mask = torch.randint(0, 4, (96, 96)).to(device)  # ALLOC
        self.masks.append(mask)  # LEAK
        return image, mask


def main():
    dataset = Cells()
    loader = DataLoader(dataset, batch_size=6, shuffle=True)
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    probe.start()
    n = 0
    for epoch in range(5):
        for images, masks in loader:
            logits = model(images.to(device))["out"]
            loss = torch.nn.functional.cross_entropy(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            probe.step(n)
            n += 1
        if epoch in (0, 2, 4):
            probe.snap(f"epoch{epoch}")
    probe.done(kind="dataset-list")


if __name__ == "__main__":
    main()

"""A program that waits for the copy of each batch, and says whether it did; its model and its order draw random numbers."""
import json, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def moved(tensor, waited):
    """On the GPU; whether torch saw the host wait for that is noted."""
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tensor = tensor.to("cuda")
    torch.cuda.set_sync_debug_mode("default")
    waited.append(len(said) > 0)
    return tensor


def main():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 256), nn.Dropout(0.5), nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(1024, 3, 64, 64), torch.arange(1024))
    losses, order, waited = [], [], []
    for _ in range(3):
        for x, numbers in DataLoader(data, batch_size=32, shuffle=True, num_workers=2, prefetch_factor=4):
            order += numbers.tolist()
            loss = model(moved(x, waited)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(json.dumps({"losses": losses, "order": order, "waited": waited, "drawn": torch.rand(1).item()}))


if __name__ == "__main__":
    main()

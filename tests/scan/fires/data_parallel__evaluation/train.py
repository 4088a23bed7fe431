import torch
from eval_model import accuracy, load

if __name__ == "__main__":
    model = load(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(200):
        model(torch.randn(8, 4, device="cuda")).mean().backward()
        optimizer.step()
    print(accuracy(model, torch.randn(8, 4, device="cuda")))

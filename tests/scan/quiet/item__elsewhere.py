import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Picker(nn.Module):
    @torch.inference_mode()
    def forward(self, x):
        return x.max().item()


class Backend(nn.Module):
    def forward(self, x):
        return x.mean().item()


def predict(x):
    return Backend()(x)


def visualize_matches(output):
    print(output.max().item())


def check_gradients(model):
    model.eval()
    for _ in range(3):
        out = model(torch.randn(8, 4, device=device)).mean()
        out.backward()
        print(out.item())


def matched(output, mode="gpu"):
    if mode == "cpu":
        return output.max().item()
    return output.max()


model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    output = model(torch.randn(8, 4, device=device))
    loss = output.square().mean() + matched(output) * 0
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        visualize_matches(output)
check_gradients(model)
print(predict(output), Picker()(output))

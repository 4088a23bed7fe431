import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 2).to(device)
model_on_host = model.cpu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def evaluate(batches):
    model.eval()
    return [model(batch).cpu() for batch in batches]


def save(path):
    torch.save({name: value.cpu() for name, value in model.state_dict().items()}, path)


for epoch in range(2):
    outputs = []
    for step in range(20):
        output = model(torch.randn(8, 4))
        output.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        outputs.append(output.detach())
        host = torch.zeros(3)
        again = host.cpu()
        if step % 10 == 0:
            print(output.detach().cpu())
    print(torch.cat(outputs).cpu().mean())
    evaluate([torch.randn(8, 4)])

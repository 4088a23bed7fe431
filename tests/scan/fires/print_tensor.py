import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Bar:
    def set_postfix(self, **given):
        self.text = str(given)


bar = Bar()
for step in range(20):
    x, y = torch.randn(8, 4).to(device), torch.randn(8, 1).to(device)
    loss = criterion(model(x), y)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, loss)  # finds: print-tensor
    text = f"{step}: {loss:.3f} {norm:.3f}"  # finds: print-tensor
    text = "%d: %.3f" % (step, loss)  # finds: print-tensor
    text = ("%d:" + " %.3f" * 2) % (step, *torch.stack([loss, norm]))  # finds: print-tensor
    text = "loss {}".format(loss.detach())  # finds: print-tensor
    logger.info("loss %s", loss)  # finds: print-tensor
    bar.set_postfix(loss=loss)  # finds: print-tensor

"""A model with stages of known cost, each timed by the script itself; the window is asked for by the script, early.

KIND: plain, reentrant or inside (other kinds of checkpointing), ddp, compiled, methods.
"""

import json
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = os.environ.get("KIND", "plain")
WIDTH, STEPS, ASKED = 256, int(os.environ.get("STEPS", "80")), 8

torch.manual_seed(0)
torch.set_num_threads(1)
times = []  # [number of the step, stage, pass, begin, end]: nanoseconds of the clock that floorit uses
opened = {}  # stage -> when its backward pass began
step = 0


class Timer(torch.autograd.Function):
    """Stands at a border of a stage: the engine passes it after all that came later, before all that came earlier."""

    @staticmethod
    def forward(ctx, x, name, is_output):
        ctx.border = name, is_output
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        name, is_output = ctx.border
        now = time.perf_counter_ns()
        if is_output:
            opened[name] = now
        else:
            times.append([step, name, "backward", opened.pop(name), now])
        return gradient, None, None


class Stage(nn.Module):
    def __init__(self, name, layers):
        super().__init__()
        self.called = name
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def work(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x

    def forward(self, x):
        began, is_again = time.perf_counter_ns(), torch._C._current_graph_task_id() != -1
        x = (
            checkpoint(self.work, x, use_reentrant=False)
            if KIND == "inside" and self.called == "again"
            else self.work(x)
        )
        if not is_again:
            times.append([step, self.called, "forward", began, time.perf_counter_ns()])
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, WIDTH)
        self.stages = nn.ModuleList([Stage("small", 2), Stage("large", 8)])
        self.again = Stage("again", 4)  # checkpointed
        self.twice = Stage("twice", 2)  # called two times
        self.unused = nn.Linear(4, 4)
        self.head = nn.Linear(WIDTH, 1)

    def timed(self, stage, x, how=None):
        x = Timer.apply(x, stage.called, False)
        return Timer.apply((how or stage)(x), stage.called, True)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = self.timed(stage, x)
        reentrant = KIND == "reentrant"
        again = None if KIND == "inside" else lambda x: checkpoint(self.again, x, use_reentrant=reentrant)
        x = self.timed(self.again, x, again)
        for _ in range(2):
            x = self.timed(self.twice, x)
        return self.head(x)


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.loss = nn.MSELoss()

    def forward(self, x):
        return self.model(x)


def ask():
    """What floorit does once steps are steady; a short run cannot wait for that."""
    folder = os.environ.get("FLOORIT_RECORD")
    if folder:
        with open(os.path.join(folder, "window.own"), "w") as request:
            request.write(str(ASKED))
        os.replace(request.name, os.path.join(folder, "window"))


net = Net()
model = Wrapper(net)
if KIND == "ddp":
    meet = tempfile.mktemp()
    torch.distributed.init_process_group("gloo", init_method="file://" + meet, rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
elif KIND == "compiled":
    model = torch.compile(nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 1)), backend="eager")
elif KIND == "methods":
    model = net.forward  # no call of the model itself
optimizer = torch.optim.SGD(net.parameters() if KIND != "compiled" else model.parameters(), lr=1e-3)
losses = []
ask()
while step < STEPS:
    x = torch.randn(512, 16)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    step += 1
    if KIND == "compiled":
        time.sleep(0.01)
print(repr(losses))
if os.environ.get("TIMES"):
    with open(os.environ["TIMES"], "w") as file:
        json.dump(times, file)

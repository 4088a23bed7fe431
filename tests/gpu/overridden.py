"""A program that asks for what is slow on a GPU, and says what is in force: by what the GPU does, where that can be seen."""
import json, os, time, warnings
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:False"
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.kinds = nn.Conv2d(3, 16, 3), nn.Linear(16, 1), set()

    def forward(self, x):
        features = self.first(x).relu()
        if not torch.compiler.is_compiling():
            self.kinds.add(str(features.dtype))
        return self.last(features.mean((2, 3)))


def waits(copy):
    """Whether torch sees the host wait for it."""
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        copy()
    torch.cuda.set_sync_debug_mode("default")
    return len(said) > 0


def runs_ahead(work, wait):
    """Whether the GPU is still busy when the host has gone on."""
    done = torch.cuda.Event()
    work()
    done.record()
    wait()
    time.sleep(0.005)  # an event takes a moment, the products far longer
    ahead = not done.query()
    done.synchronize()
    return ahead


def tf32_error():
    a, b = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
    exact = a.double() @ b.double()
    return ((a @ b - exact).norm() / exact.norm()).item()


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
data = TensorDataset(torch.randn(256, 3, 32, 32), torch.randn(256, 1))
losses, copies_wait, pinned = [], [], []
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        pinned.append(x.is_pinned())
        copies_wait.append(waits(lambda: x.to("cuda")))
        x, y = x.to("cuda"), y.to("cuda", None, False)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

large = torch.randn(8192, 8192, device="cuda", dtype=torch.float64)


def products():
    for _ in range(10):
        torch.mm(large, large)


products()
steps = [state["step"] for state in optimizer.state.values()]
print(
    json.dumps(
        {
            "losses": losses,
            "pinned": all(pinned),
            "copies wait": any(copies_wait),
            "runs ahead": runs_ahead(products, lambda: None),
            "runs ahead of synchronize": runs_ahead(products, torch.cuda.synchronize),
            "tf32 error": tf32_error(),
            "benchmark": torch.backends.cudnn.benchmark,
            "deterministic": torch.backends.cudnn.deterministic,
            "kinds": sorted(model.kinds),
            "channels last": model.first.weight.is_contiguous(memory_format=torch.channels_last),
            "expandable": any(segment.get("is_expandable") for segment in torch.cuda.memory_snapshot()),
            "counted on GPU": all(step.is_cuda for step in steps),
            "compiled": model._compiled_call_impl is not None,
        }
    )
)

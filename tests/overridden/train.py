"""A training program as people write them, which says what is in force in it: the losses, the order of samples, …

Run by test_overrides, with and without overrides. What it asks for itself is the opposite of each of them. With an
argument, a folder, it also reads a dataset that has no shares for workers, and files in that folder.
"""

import json
import os
import sys

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, get_worker_info

KEPT = []


class Numbered(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 6, 6, generator=generator), torch.tensor(seen_here(index))


class Shared(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter([torch.tensor(seen_here(index)) for index in range(first, 8, step)])


class Repeated(IterableDataset):
    def __iter__(self):
        return iter([torch.tensor(seen_here(index)) for index in range(8)])


def seen_here(index):
    """A sample's number, and what is in force where it is made."""
    info = get_worker_info()
    return [index, 0 if info is None else info.num_workers, torch.get_num_threads(), os.getpid()]


def set_up_worker(_):
    torch.set_num_threads(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.Linear(4, 1)
        self.computed_in, self.returned, self.pictures, self.dropped = set(), set(), set(), None

    def forward(self, x):
        self.pictures.add(x.is_contiguous(memory_format=torch.channels_last))
        features = self.drop(self.first(x).relu().mean((2, 3)))
        self.computed_in.add(str(self.last(features).dtype))
        return self.last(features)


def over(loader):
    return sorted(int(sample[0]) for batch in loader for sample in batch.reshape(-1, 4))


def ask_for_what_is_slow():
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"


def in_force(model, optimizer):
    """As torch itself says, and as tensors lie in memory."""
    return {
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "channels_last": model.first.weight.is_contiguous(memory_format=torch.channels_last),
        "pictures": sorted(model.pictures),
        "computed_in": sorted(model.computed_in),
        "returned": sorted(model.returned),
        "fused": [group["fused"] for group in optimizer.param_groups],
        "dropped": model.dropped,
        "compiled": model._compiled_call_impl is not None,
    }


def wait_for_gpu():
    """Whether torch really was asked to; without a GPU it complains."""
    torch.cuda.empty_cache()
    try:
        torch.cuda.synchronize()
    except (AssertionError, RuntimeError):
        return "complained"
    return "passed"


def reduce_gradients(folder):
    """As DDP itself says, once it has been made."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 2), None, None, 0, bucket_cap_mb=3)
    KEPT.append(ddp)  # torch may hang where a group's last owner goes while gloo still cleans up
    told = ddp._get_ddp_logging_data()
    return [ddp.static_graph, bool(told["gradient_as_bucket_view"]), told["bucket_cap_bytes"]]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ask_for_what_is_slow()
    said = {"losses": [], "order": [], "made_by": set(), "threads": set(), "pids": set(), "evaluated_by": set()}
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = Numbered()
    loader = DataLoader(data, batch_size=4, shuffle=True, worker_init_fn=set_up_worker)
    validation = DataLoader(data, batch_size=8)
    for _ in range(2):
        model.train()
        for x, seen in loader:
            optimizer.zero_grad(set_to_none=False)
            model.dropped = model.last.weight.grad is None
            output = model(x)
            model.returned.add(str(output.dtype))
            loss = output.square().mean()
            loss.backward()
            optimizer.step()
            said["losses"].append(loss.item())
            for name, numbers in zip(("order", "made_by", "threads", "pids"), seen.T.tolist(), strict=True):
                said[name] = said[name] + numbers if name == "order" else said[name].union(numbers)
        model.eval()
        with torch.no_grad():
            for x, seen in validation:
                model(x)
                said["evaluated_by"].update(seen[:, 1].tolist())
    model.train()
    said["in force"] = in_force(model, optimizer)
    said["reduced"] = reduce_gradients(os.getcwd())
    said["drawn"] = torch.rand(1).item()
    others = {
        "one by one": DataLoader(data, batch_size=None, collate_fn=lambda sample: sample[1]),
        "own batches": DataLoader(
            data,
            batch_sampler=BatchSampler(SequentialSampler(data), 5, False),
            collate_fn=lambda samples: torch.stack([sample[1] for sample in samples]),
        ),
        "own stream": DataLoader(
            data,
            shuffle=True,
            generator=torch.Generator().manual_seed(1),
            collate_fn=lambda samples: samples[0][1],
        ),
        "shared out": DataLoader(Shared(), batch_size=2),
    }
    if sys.argv[1:]:
        others["repeated"] = DataLoader(Repeated(), batch_size=2)
    said["others"] = {name: over(each) for name, each in others.items()}
    if sys.argv[1:]:
        import decodes

        said["seen"] = decodes.train()
    said["waited"] = wait_for_gpu()
    print(json.dumps(said, default=sorted))


if __name__ == "__main__":
    main()

"""The training run that the service starts for a project."""

import itertools
import math
import os
import random
import resource
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from .autobatch import measured_batch_size, table_batch_size
from .dataset import EpochSampler, LabelledSet
from .loss import DetectionLoss
from .model import YOLO
from .val import validate

CLASSES = ("plate", "disc", "wedge", "cross")
WARMUP = 10


def log(message):
    print(f"[{datetime.now().isoformat(timespec='seconds')}] {message}", flush=True)


def limit_ram(gigabytes):
    """What the run may still take of the host's memory; the service shares it with the annotators."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(gigabytes * 2**30), resource.RLIM_INFINITY))


class Trainer:
    def __init__(self, settings, data, out, device, seed=0):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.settings, self.out, self.device, self.seed = settings, Path(out), device, seed
        self.amp = settings["amp"] and device.type == "cuda"
        self.vram_gb = self.setup_gpu()
        self.model = YOLO(len(CLASSES), settings["widths"], settings["depths"]).to(device)
        self.criterion = DetectionLoss(len(CLASSES), settings["imgsz"], device)
        self.batch = self.choose_batch()
        self.log_settings()
        if settings["ram_limit"]:
            limit_ram(settings["ram_limit"])
        self.train_loader = self.make_loader(LabelledSet(data, "train", settings, self.out / "cache", True, seed), True)
        self.val_loader = self.make_loader(LabelledSet(data, "val", settings, self.out / "cache"), False)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), settings["lr0"], settings["momentum"], weight_decay=settings["weight_decay"],
            nesterov=True,
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp)
        self.losses, self.best = [], -1.0

    def setup_gpu(self):
        if self.device.type != "cuda":
            log("GPU: none, training on the CPU")
            return None
        properties = torch.cuda.get_device_properties(self.device)
        total = properties.total_memory / 2**30
        log(f"GPU: {properties.name}")
        if self.settings["vram_limit"]:
            torch.cuda.set_per_process_memory_fraction(min(1.0, self.settings["vram_limit"] / total), self.device)
            total = min(total, self.settings["vram_limit"])
        log(f"GPU Memory: {total:.1f} GB")
        return total

    def choose_batch(self):
        if self.settings["batch"] > 0:
            return self.settings["batch"]
        if self.vram_gb is None:
            return 8
        if self.settings["auto_batch"] == "table":
            batch = table_batch_size(self.vram_gb, self.settings["imgsz"])
        else:
            batch = measured_batch_size(self.model, self.criterion, self.settings["imgsz"], self.vram_gb, self.amp)
        log(f"Auto batch size: {batch} (based on {self.vram_gb:.1f}GB VRAM)")
        return batch

    def log_settings(self):
        kinds = {"disk": "disk (disk-based, memory-safe)", "ram": "ram (fast, needs memory)"}
        log("Training settings (high-performance mode):")
        log(f"  - Batch size: {self.batch}")
        log(f"  - Workers: {self.settings['workers']}")
        log(f"  - AMP (Mixed Precision): {self.amp}")
        log(f"  - Cache: {kinds.get(self.settings['cache'], 'none')}")
        log(f"  - Cosine LR: {self.settings['cos_lr']}")

    def make_loader(self, dataset, train):
        batch = min(self.batch if train else max(1, self.batch // 4), len(dataset))
        if train:
            used = len(dataset) // batch * batch
            sampler = EpochSampler(len(dataset), used, self.seed, endless=self.settings["keep_workers"])
        else:
            sampler = [(0, index) for index in range(len(dataset))]
        return DataLoader(
            dataset,
            batch_size=batch,
            sampler=sampler,
            num_workers=self.settings["workers"],
            pin_memory=self.device.type == "cuda",
        )

    def set_lr(self, step, steps):
        lr0, lrf = self.settings["lr0"], self.settings["lrf"]
        progress = (1 - math.cos(math.pi * step / steps)) / 2 if self.settings["cos_lr"] else step / steps
        for group in self.optimizer.param_groups:
            group["lr"] = lr0 * (1 + (lrf - 1) * progress)

    def train_step(self, images, targets):
        images, targets = images.to(self.device, non_blocking=True), targets.to(self.device, non_blocking=True)
        with torch.autocast(self.device.type, torch.float16, enabled=self.amp):
            outputs = self.model(images)
        loss = self.criterion(outputs, targets)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def save(self, name, step):
        state = {"step": step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, self.out / "weights" / name)

    def run_validation(self, epoch, step):
        fitness = validate(self.model, self.val_loader, self.criterion, len(CLASSES), self.device, self.amp)
        log(f"Epoch {epoch + 1}: mAP50 {fitness:.3f}")
        if fitness > self.best:
            self.best = fitness
            self.save("best.pt", step)

    def clock(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def train(self, steps):
        """Trains for so many steps; returns the seconds of one after the warm-up."""
        (self.out / "weights").mkdir(exist_ok=True)
        n_batches = len(self.train_loader)
        epochs = math.ceil(steps / n_batches)
        endless = iter(self.train_loader) if self.settings["keep_workers"] else None
        started, timed_from, step = self.clock(), 0, 0
        for epoch in range(epochs):
            batches = itertools.islice(endless, n_batches) if endless else iter(self.train_loader)
            for images, targets in batches:
                self.set_lr(step, steps)
                self.losses.append(self.train_step(images, targets))
                step += 1
                if step % 10 == 0:
                    log(f"Epoch {epoch + 1}/{epochs} step {step}/{steps}: loss {self.losses[-1].item():.4f}")
                if self.settings["save_steps"] and step % self.settings["save_steps"] == 0:
                    self.save("last.pt", step)
                if step == WARMUP and steps > WARMUP:
                    started, timed_from = self.clock(), step
                if step == steps:
                    break
            self.save("last.pt", step)
            if (epoch + 1) % self.settings["val_period"] == 0 or epoch + 1 == epochs:
                self.run_validation(epoch, step)
        return (self.clock() - started) / (steps - timed_from)

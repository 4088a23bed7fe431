"""Training by iterations, with evaluation, logging and half precision."""

import logging
import time

import torch

logger = logging.getLogger("bevseg")
WARMUP = 10  # iterations that the speed leaves out


def wrap_fp16_model(model, recursive=False):
    """Switch half precision on in the modules that know of it."""
    for module in model.modules() if recursive else model.children():
        if hasattr(module, "fp16_enabled"):
            module.fp16_enabled = True


class IterLoader:
    """Batches without end: starts over when the loader is through."""

    def __init__(self, loader):
        self.loader, self.epoch, self.batches = loader, 0, iter(loader)

    def __next__(self):
        try:
            return next(self.batches)
        except StopIteration:
            self.epoch += 1
            self.batches = iter(self.loader)
            return next(self.batches)


class IterBasedRunner:
    def __init__(self, model, loaders, cfg, device, work_dir):
        self.model, self.cfg, self.device, self.work_dir = model.to(device), cfg, device, work_dir
        self.train_loader, self.val_loader = loaders
        lr = cfg.optimizer.lr * cfg.data.samples_per_gpu / cfg.optimizer.base_batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=cfg.optimizer.weight_decay)
        use_fp16 = bool(cfg.fp16) and device.type == "cuda"
        scale = cfg.fp16.loss_scale if use_fp16 else 1.0
        self.scaler = torch.amp.GradScaler(device.type, init_scale=scale, growth_interval=10**6, enabled=use_fp16)
        if use_fp16:
            wrap_fp16_model(model, cfg.fp16.recursive)
            logger.info("FP16混合精度训练已启用 (half precision is on), loss scale %g", scale)
        self.losses = []

    def run(self, max_iters):
        """Train; returns the mean seconds of an iteration after the warm-up."""
        self.model.train()
        batches = IterLoader(self.train_loader)
        began, counted = self._now(), max_iters
        logged, data_time = time.time(), 0.0
        for i in range(1, max_iters + 1):
            asked = time.time()
            batch = next(batches)
            data_time += time.time() - asked
            self.train_iter(batch)
            if i % self.cfg.log_config.interval == 0:
                self._log(i, max_iters, time.time() - logged, data_time)
                logged, data_time = time.time(), 0.0
            if i % self.cfg.evaluation.interval == 0:
                self._evaluate(i)
            if i == WARMUP and max_iters > WARMUP:
                began, counted = self._now(), max_iters - WARMUP
        seconds = (self._now() - began) / counted
        torch.save({"state_dict": self.model.state_dict(), "iter": max_iters}, self.work_dir / "latest.pth")
        return seconds

    def train_iter(self, batch):
        batch = {name: value.to(self.device, non_blocking=True) for name, value in batch.items()}
        logits = self.model(batch["img"], batch["cells"])
        loss = self.model.loss(logits, batch["gt_bev"])
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses.append(loss.detach())

    def _log(self, i, max_iters, seconds, data_time):
        n, lr = self.cfg.log_config.interval, self.optimizer.param_groups[0]["lr"]
        loss = self.losses[-1].item()
        logger.info(
            "Iter [%d/%d] lr: %.3e, time: %.3f, data_time: %.3f, loss: %.4f",
            *(i, max_iters, lr, seconds / n, data_time / n, loss),
        )

    @torch.no_grad()
    def _evaluate(self, i):
        """Mean over the classes of intersection over union on the validation samples."""
        self.model.eval()
        both = either = 0
        for batch in self.val_loader:
            batch = {name: value.to(self.device, non_blocking=True) for name, value in batch.items()}
            predicted, truth = self.model(batch["img"], batch["cells"]) > 0, batch["gt_bev"] > 0.5
            both = both + (predicted & truth).sum((0, 2, 3))
            either = either + (predicted | truth).sum((0, 2, 3))
        self.model.train()
        logger.info("Iter(val) [%d] mIoU: %.4f", i, (both / either.clamp(min=1)).mean().item())

    def _now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

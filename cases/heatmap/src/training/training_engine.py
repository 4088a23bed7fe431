"""The training loop: batches in, losses and a checkpoint out."""

import logging
import math
import time

import torch

from src.models.losses import KeypointLoss
from src.preprocessing.encoding import bump, sigma_of

logger = logging.getLogger(__name__)
WARMUP = 10  # iterations that the speed leaves out


class TrainingEngine:
    def __init__(self, model, loaders, cfg, device, out):
        self.cfg, self.device, self.out = cfg["train"], device, out
        self.stride, self.radius = cfg["data"]["stride"], cfg["data"]["radius"]
        self.cells = cfg["data"]["image_size"] // self.stride
        self.batch_size = cfg["data"]["batch_size"]
        self.train_loader, self.val_loader = loaders
        self.amp = self.cfg["amp"] == "bf16" and device.type == "cuda"
        self.cuda_graphs = self.cfg["cuda_graphs"] and device.type == "cuda"
        self.model = model.to(device)
        if self.cuda_graphs:  # before the loader's threads start
            self._capture()
        self.criterion = KeypointLoss(self.cfg["offset_weight"])
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=self.cfg["lr"], weight_decay=self.cfg["weight_decay"]
        )
        self.losses = []

    # ---- one batch -----------------------------------------------------------------------------------------------

    def _autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=not self.cuda_graphs)

    def _capture(self):
        """Record the model's kernels once; from then on a pass is one launch."""
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        size = self.cells * self.stride
        sample = torch.zeros(self.batch_size, 1, size, size, device=self.device)
        with self._autocast():
            self.model = torch.cuda.make_graphed_callables(self.model, (sample,))
        self.model.load_state_dict(state)  # the running statistics have seen the sample

    def _prepare(self, batch):
        """The files are batches already: drop the loader's own dimension and move the rest to the device."""
        keypoints = batch.pop("keypoints").squeeze(0)
        batch = {name: value.squeeze(0) for name, value in batch.items()}
        batch = {name: value.to(self.device, non_blocking=self.cfg["non_blocking"]) for name, value in batch.items()}
        batch["images"] = batch["images"].float().div_(255)
        batch["keypoints"] = keypoints
        return batch

    def _generate_targets(self, keypoints):
        """Draw a Gaussian around each visible keypoint, and its sub-cell offset at the cell it falls into."""
        count, kinds = keypoints.shape[:2]
        heatmaps = torch.zeros(count, kinds, self.cells, self.cells, device=self.device)
        offsets = torch.zeros(count, 2 * kinds, self.cells, self.cells, device=self.device)
        sigma = sigma_of(self.radius)
        for i in range(count):
            for k in range(kinds):
                x, y, visible = keypoints[i, k].tolist()
                if not visible:
                    continue
                cx, cy = x // self.stride, y // self.stride
                for py in range(max(0, cy - self.radius), min(self.cells, cy + self.radius + 1)):
                    for px in range(max(0, cx - self.radius), min(self.cells, cx + self.radius + 1)):
                        heatmaps[i, k, py, px] = bump((px - cx) ** 2 + (py - cy) ** 2, sigma)
                offsets[i, 2 * k, cy, cx] = x / self.stride - cx
                offsets[i, 2 * k + 1, cy, cx] = y / self.stride - cy
        return heatmaps, offsets

    def train_step(self, batch):
        batch = self._prepare(batch)
        if self.cfg.get("use_precomputed_targets", False):
            heatmaps, offsets = batch["heatmaps"], batch["offsets"]
        else:
            heatmaps, offsets = self._generate_targets(batch["keypoints"])
        with self._autocast():
            heatmap_logits, offset_preds = self.model(batch["images"])
        loss = self.criterion(heatmap_logits, offset_preds, heatmaps, offsets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    # ---- the loop ------------------------------------------------------------------------------------------------

    def fit(self, steps):
        """Train for a number of iterations; returns the mean seconds of one after the warm-up."""
        began, counted, step, epoch = self._now(), steps, 0, 0
        while step < steps:
            self.train_loader.dataset.epoch = epoch
            self.model.train()
            for batch in self.train_loader:
                self.train_step(batch)
                step += 1
                if step % self.cfg["log_interval"] == 0:
                    logger.info("epoch %d step %d/%d loss %.4f", epoch, step, steps, self.losses[-1].item())
                if step == WARMUP and steps > WARMUP:
                    began, counted = self._now(), steps - WARMUP
                if step == steps:
                    break
            epoch += 1
            logger.info("epoch %d done, mean error %.2f px", epoch, self.validate())
        seconds = (self._now() - began) / counted
        torch.save({"model": self.model.state_dict(), "step": step}, self.out / "last.pt")
        return seconds

    def _now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    @torch.no_grad()
    def validate(self):
        """Mean distance between predicted and true keypoints, in pixels."""
        self.model.eval()
        total, count = 0.0, 0
        for batch in self.val_loader:
            batch = self._prepare(batch)
            with self._autocast():
                logits, offsets = self.model(batch["images"])
            predicted = self._decode(logits, offsets).cpu()
            truth, visible = batch["keypoints"][..., :2].float(), batch["keypoints"][..., 2] > 0
            total += (predicted - truth).norm(dim=-1)[visible].sum().item()
            count += int(visible.sum())
        return total / count if count else math.nan

    def _decode(self, logits, offsets):
        """The best cell of each heatmap plus its offset, in input pixels."""
        count, kinds = logits.shape[:2]
        best = logits.flatten(2).argmax(-1)
        cells = torch.stack((best % self.cells, best // self.cells), dim=-1)
        maps = offsets.view(count, kinds, 2, -1)
        offset = maps.gather(-1, best[..., None, None].expand(-1, -1, 2, 1)).squeeze(-1)
        return (cells + offset) * self.stride

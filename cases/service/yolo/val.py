"""Validation: mAP at an IoU of 0.5 over the validation set."""

import numpy as np
import torch

from .loss import box_iou
from .model import decode

MAX_DETECTIONS = 100
NMS_IOU = 0.6


def detect(boxes, scores):
    """The best boxes of one picture after non-maximum suppression within a class."""
    confidence, classes = scores.max(dim=-1)
    order = confidence.argsort(descending=True)[:MAX_DETECTIONS]
    boxes, confidence, classes = boxes[order], confidence[order], classes[order]
    clash = (box_iou(boxes[:, None], boxes[None]) > NMS_IOU) & (classes[:, None] == classes[None])
    clash = clash.triu(diagonal=1).cpu().numpy()
    keep = np.ones(len(order), bool)
    for i in range(len(order)):
        if keep[i]:
            keep[clash[i]] = False
    kept = torch.from_numpy(keep).to(boxes.device)
    return boxes[kept], confidence[kept], classes[kept]


def match(boxes, classes, targets):
    """Which detections (best first) hit a box of their class that none has hit before."""
    iou = box_iou(boxes[:, None], targets[None, :, 1:]) * (classes[:, None] == targets[None, :, 0])
    iou = iou.cpu().numpy()
    hits = np.zeros(len(boxes), bool)
    free = np.ones(len(targets), bool)
    for i in range(len(boxes)):
        best = int(np.argmax(iou[i] * free)) if len(targets) else 0
        if len(targets) and free[best] and iou[i, best] > 0.5:
            hits[i], free[best] = True, False
    return hits


def average_precision(hits, confidence, n_targets):
    order = np.argsort(-confidence, kind="stable")
    tp = np.cumsum(hits[order])
    precision = tp / np.arange(1, len(tp) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    recall = np.concatenate([[0.0], tp / max(n_targets, 1)])
    return float(np.sum(np.diff(recall) * precision))


@torch.no_grad()
def validate(model, loader, criterion, n_classes, device, amp):
    model.eval()
    hits, confidences, classes, wanted = [], [], [], []
    for images, targets in loader:
        images, targets = images.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.float16, enabled=amp):
            distances, logits = model(images)
        boxes = decode(distances, criterion.points, criterion.strides)
        for picture, labels in enumerate(targets):
            labels = labels[labels[:, 0] >= 0]
            found, confidence, kinds = detect(boxes[picture], logits[picture].float().sigmoid())
            hits.append(match(found, kinds, labels))
            confidences.append(confidence.cpu().numpy())
            classes.append(kinds.cpu().numpy())
            wanted.append(labels[:, 0].cpu().numpy())
    model.train()
    hits, confidences, classes, wanted = map(np.concatenate, (hits, confidences, classes, wanted))
    aps = [
        average_precision(hits[classes == c], confidences[classes == c], int((wanted == c).sum()))
        for c in range(n_classes)
    ]
    return float(np.mean(aps))

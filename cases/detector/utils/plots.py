"""A picture of a batch with its boxes."""
import math

import cv2
import numpy as np

from utils.general import xywh2xyxy


def color(cls):
    return [int(v) for v in (cls * 37 % 200 + 55, cls * 91 % 200 + 55, cls * 53 % 200 + 55)]


def plot_images(images, targets, fname, paths=None, min_size=640, max_subplots=16):
    images = images[:max_subplots].cpu().float().numpy()
    targets = targets.cpu().numpy()
    bs, _, h, w = images.shape
    ns = math.ceil(bs ** 0.5)
    scale = math.ceil(min_size / (ns * max(h, w)))  # small images are shown larger
    h, w = h * scale, w * scale
    mosaic = np.full((ns * h, ns * w, 3), 255, dtype=np.uint8)
    for i, img in enumerate(images):
        x, y = w * (i % ns), h * (i // ns)
        img = np.ascontiguousarray((img * 255).astype(np.uint8).transpose(1, 2, 0)[:, :, ::-1])
        mosaic[y:y + h, x:x + w] = cv2.resize(img, (w, h), interpolation=cv2.INTER_CUBIC)
        rows = targets[targets[:, 0] == i]
        boxes = (xywh2xyxy(rows[:, 2:6]) * (w, h, w, h) + (x, y, x, y)).astype(int)
        for (x0, y0, x1, y1), cls in zip(boxes.tolist(), rows[:, 1].astype(int).tolist()):
            cv2.rectangle(mosaic, (x0, y0), (x1, y1), color(cls), 1, lineType=cv2.LINE_AA)
            cv2.putText(mosaic, str(cls), (x0, y0 - 2), 0, 0.35, color(cls), 1, lineType=cv2.LINE_AA)
        if paths:
            name = paths[i].rsplit('/', 1)[-1]
            cv2.putText(mosaic, name, (x + 4, y + 14), 0, 0.35, (220, 220, 220), 1, lineType=cv2.LINE_AA)
        cv2.rectangle(mosaic, (x, y), (x + w, y + h), (255, 255, 255), 2)
    cv2.imwrite(str(fname), mosaic)

"""Where the pixels of each camera end up on the bird's-eye grid, for every depth that they may have."""

import numpy as np


class FrustumGeometry:
    """Grid cell of each point of the frustums, from the calibration of a sample's cameras."""

    def __init__(self, grid_config, input_size, downsample):
        self.bounds = [grid_config[axis] for axis in ("xbound", "ybound", "zbound")]
        self.shape = [round((stop - start) / step) for start, stop, step in self.bounds]
        self.depths = np.arange(*grid_config["dbound"], dtype=np.float32)
        h, w = input_size[0] // downsample, input_size[1] // downsample
        u = np.linspace(0, input_size[1] - 1, w, dtype=np.float32)
        v = np.linspace(0, input_size[0] - 1, h, dtype=np.float32)
        self.pixels = np.stack([*np.meshgrid(u, v), np.ones((h, w), np.float32)], axis=-1)

    @property
    def outside(self):
        """The cell for all points that are not over the grid."""
        return self.shape[0] * self.shape[1]

    def __call__(self, cams, scale, crop):
        """(cameras * depths * h * w) cells; the picture was scaled, then `crop` rows were cut off at its top."""
        cells = [self._depth_slice(cam, scale, crop, depth) for cam in cams for depth in self.depths]
        return np.concatenate(cells)

    def _depth_slice(self, cam, scale, crop, depth):
        intrinsic = np.array(cam["intrinsic"], np.float32)
        pixels = self.pixels.reshape(-1, 3).copy()
        pixels[:, 1] += crop
        pixels[:, :2] /= scale
        rays = pixels @ np.linalg.inv(intrinsic).T
        points = (rays * depth) @ np.array(cam["rotation"], np.float32).T + np.array(cam["translation"], np.float32)
        index = [np.floor((points[:, i] - start) / step) for i, (start, _, step) in enumerate(self.bounds)]
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, self.shape, strict=True)])
        flat = index[1] * self.shape[0] + index[0]
        return np.where(inside, flat, self.outside).astype(np.int32)

import numpy as np
from torch.utils.data import Dataset


class Heatmaps(Dataset):
    def __init__(self, height, width, num_joints):
        self.height, self.width, self.num_joints = height, width, num_joints
        self.grid = np.zeros((height, width))
        for y in range(height):
            for x in range(width):
                self.grid[y, x] = x + y

    def __len__(self):
        return 10

    def __getitem__(self, index):
        target = np.zeros((self.num_joints, self.height, self.width), np.float32)
        x, y = np.arange(self.width)[None, :], np.arange(self.height)[:, None]
        for joint in range(self.num_joints):
            target[joint] = np.exp(-((x - joint) ** 2 + (y - joint) ** 2) / 8)
        kernel = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                kernel[i, j] = i * j
        tiles = []
        for row in range(0, self.height, 64):
            for column in range(0, self.width, 64):
                tiles.append(target[:, row : row + 64, column : column + 64])
        return target, kernel, tiles


def draw(image):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            print(image[y, x])

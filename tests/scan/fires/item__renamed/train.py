"""A class that is imported by another name is in use."""

import torch


def create_model():
    from models import Diffusion as M

    return M()


if __name__ == "__main__":
    diffusion = create_model()
    for _ in range(100):
        diffusion.optimize_parameters(torch.randn(4, 4, device="cuda"))

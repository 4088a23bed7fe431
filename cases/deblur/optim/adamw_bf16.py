"""AdamW whose two moments are kept in bfloat16: half the optimizer state, arithmetic in fp32.

bfloat16 resolves steps of 1/256. The second moment decays by 1 - beta2 a step, so beta2 must not be above 0.99:
with 0.999 it would never decay at all.
"""

import torch


class AdamWBF16(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.01):
        if betas[1] > 0.99:
            raise ValueError(f"beta2 of {betas[1]} is too close to 1 for bfloat16 moments")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, group)
        return loss

    def update(self, p, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(p, dtype=torch.bfloat16)
            state["exp_avg_sq"] = torch.zeros_like(p, dtype=torch.bfloat16)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        exp_avg = state["exp_avg"].float().lerp_(p.grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].float().mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
        state["exp_avg"].copy_(exp_avg)
        state["exp_avg_sq"].copy_(exp_avg_sq)

        correction2 = (1 - beta2 ** state["step"]) ** 0.5
        denom = exp_avg_sq.sqrt_().add_(group["eps"] * correction2)
        if group["weight_decay"]:
            p.mul_(1 - group["lr"] * group["weight_decay"])
        p.addcdiv_(exp_avg, denom, value=-group["lr"] * correction2 / (1 - beta1 ** state["step"]))

"""The losses: the root of each backward pass, kept on its device and read when the process ends, so nothing waits.

Only where wire.LOSSES asks for it. It may also ask for a rounding error, planted in the weights once, to see how far
one takes the losses of this program.
"""

import json
import os
import weakref

from .known import Known
from .traces import is_from_signal

NAME = "losses"
MOST = 1 << 14  # that are kept: 128 KiB on the device
_SEED = 20261115  # of the rounding error: the same on every rank


def keeping(session, enter):
    """`enter` of the hook on backward, with the losses kept besides."""
    kept = _Losses(session)
    session.last_words.append(kept.tell)
    os.register_at_fork(after_in_child=kept.forget)
    _hook_scaling(session, kept)
    log = session.log

    def enter_and_keep(roots):
        token = enter(roots)
        if token is not None and log.backward == 1 and not kept.has_failed:
            try:
                kept.keep(roots)
            except Exception as error:
                if is_from_signal(error):
                    raise
                kept.has_failed = True
                session.missing(NAME, "they could not be kept: %r" % (error,))
        return token

    return enter_and_keep


def _hook_scaling(session, kept):
    try:
        from torch.amp.grad_scaler import GradScaler

        session.hook(NAME, GradScaler.scale, lambda outputs: outputs, result=kept.scaled, names=("outputs",))
    except Exception as error:
        session.missing(NAME, "those that a GradScaler scales are told with its factor: %r" % (error,))


def plant(session, asked):
    """Where a rounding error is asked for: each optimizer's weights get it after their first step."""
    jitter = json.loads(asked)["jitter"]
    if not jitter:
        return
    from torch.optim import optimizer as optim

    torch = session.torch
    is_compiling = torch.compiler.is_dynamo_compiling
    reached = Known()

    def after(optimizer, args, kwargs):
        try:
            if is_compiling() or id(optimizer) in reached:
                return
            reached.learn(optimizer, True)
            with torch.no_grad():
                _shake(torch, optimizer, jitter)
        except Exception as error:
            if is_from_signal(error):
                raise
            session.missing(NAME, "no rounding error could be planted: %r" % (error,))

    optim.register_optimizer_step_post_hook(after)


def _shake(torch, optimizer, jitter):
    """Draws from a generator of our own: the program's random streams stay as they are."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if weight.is_floating_point():
                dice = torch.Generator(device=weight.device).manual_seed(_SEED)
                noise = torch.empty_like(weight).uniform_(-jitter, jitter, generator=dice)
                weight.addcmul_(weight, noise)


class _Losses:
    """Of one process."""

    def __init__(self, session):
        self._session = session
        self._torch = session.torch
        self.has_failed = False
        self._abandoned = []  # a forked child must not free what is on a GPU
        self._begin()

    def _begin(self):
        self._count = 0
        self._buffers = {}  # device -> (the values, which of all losses they are)
        self._unscaled = (lambda: None, None)  # what a GradScaler returned last, and what it was given

    def forget(self):
        """In a forked child: its losses are its own."""
        self._abandoned.append(self._buffers)
        self._begin()

    def scaled(self, given, returned):
        """A GradScaler has scaled a loss: the loss is what it was given."""
        if type(returned) is self._torch.Tensor:
            self._unscaled = (weakref.ref(returned), given.detach())

    def keep(self, roots):
        """One more. A pass from anything but a single number is counted, and has no loss."""
        root = roots[0] if isinstance(roots, (list, tuple)) and roots else roots
        torch, count = self._torch, self._count
        self._count += 1
        if type(root) is not torch.Tensor or root.numel() != 1 or count >= MOST:
            return
        if self._session.has_graphs and root.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        of, unscaled = self._unscaled
        loss = unscaled if of() is root else root.detach()
        if loss.device not in self._buffers:
            wide = torch.float32 if loss.device.type == "mps" else torch.float64  # as wide as the device has
            self._buffers[loss.device] = (torch.zeros(MOST, dtype=wide, device=loss.device), [])
        values, which = self._buffers[loss.device]
        values[len(which) : len(which) + 1].copy_(loss.reshape(1))
        which.append(count)

    def tell(self):
        """The process ends: now they are read."""
        found = [pair for values, which in self._buffers.values() for pair in zip(which, values[: len(which)].tolist())]
        if found:
            self._session.writer.note("losses", values=[value for _, value in sorted(found)], backwards=self._count)

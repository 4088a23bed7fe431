"""What the host waits for: copies to the GPU from pinned memory, and synchronize and empty_cache in the loop."""

import functools

from ..traces import hide_ours

CODES = ("async-copy", "sync-off")
_MOVING = ("to", "cuda")


def install(session, asked):
    for code, applied in asked.items():
        _INSTALL[code](session, applied)


def _async_copy(session, applied):
    tensor = session.torch.Tensor
    for name in _MOVING:
        session.patches.replace(tensor, name, _unwaited(session, applied, getattr(tensor, name)))


def _unwaited(session, applied, method):
    @functools.wraps(method)
    def move(self, *args, **kwargs):
        try:
            if self.is_cuda or session.is_worker or not self.is_pinned() or _is_unwaited(args, kwargs):
                return method(self, *args, **kwargs)
            at = _switch_at(args)
            if at is None:
                kwargs["non_blocking"] = True
            else:
                args = (*args[:at], True, *args[at + 1 :])
            moved = method(self, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        if moved.is_cuda:
            applied.overrule(False)
        return moved

    return move


def _switch_at(args):
    """Where among the arguments of `to`, `cuda` or `copy_` non_blocking stands: it is the first truth value."""
    return next((at for at, value in enumerate(args) if value is True or value is False), None)


def _is_unwaited(args, kwargs):
    at = _switch_at(args)
    return bool(kwargs.get("non_blocking")) if at is None else args[at]


def _sync_off(session, applied):
    """Once the program trains. A copy from the GPU that it did not wait for still gets its synchronize."""
    cuda, tensor = session.torch.cuda, session.torch.Tensor
    copies = []  # of that kind, since the last synchronize
    session.patches.replace(cuda, "empty_cache", _left_out(session, applied, cuda.empty_cache, lambda: False))
    session.patches.replace(
        cuda, "synchronize", _left_out(session, applied, cuda.synchronize, lambda: _emptied(copies))
    )
    session.patches.replace(tensor, "to", _noting(tensor.to, copies, lambda source, moved: source.is_cuda))
    session.patches.replace(tensor, "copy_", _noting(tensor.copy_, copies, lambda target, _: not target.is_cuda))


def _left_out(session, applied, function, is_needed):
    log = session.log

    @functools.wraps(function)
    def leave_out(*args, **kwargs):
        if log.backwards and not is_needed():
            applied.overrule(True)
            return None
        try:
            return function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    return leave_out


def _emptied(things):
    """Whether there were any."""
    had, things[:] = bool(things), []
    return had


def _noting(method, copies, is_from_gpu):
    @functools.wraps(method)
    def copy(self, *args, **kwargs):
        try:
            copied = method(self, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        if _is_unwaited(args, kwargs) and is_from_gpu(self) and not copies:
            copies.append(True)
        return copied

    return copy


_INSTALL = {"async-copy": _async_copy, "sync-off": _sync_off}

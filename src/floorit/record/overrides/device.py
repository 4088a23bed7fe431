"""What is decided when CUDA starts: whether each launch is waited for, and how the allocator's segments grow."""

import os

NAME = "overrides of how CUDA starts"
CODES = ("launch-blocking", "allocator")
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_OFF = (None, "", "0")
_EXPANDABLE = "expandable_segments"
# The variable with the allocator's settings, and the function of torch._C that changes them while it is in use: in
# newer versions of torch, which know the other variable too, and in older ones.
_ALLOCATORS = (
    ("PYTORCH_ALLOC_CONF", "_accelerator_setAllocatorSettings"),
    ("PYTORCH_CUDA_ALLOC_CONF", "_cuda_cudaCachingAllocator_set_allocator_settings"),
)


def install(session, asked):
    """Variables are read when CUDA starts: set now, and again at that moment, as the program may have set them."""
    starts = [_BEFORE[code](applied) for code, applied in asked.items()]
    for prepare in starts:
        prepare()

    def starting():
        for prepare in starts:
            prepare()

    def started():
        for code, applied in asked.items():
            _AFTER[code](session.torch, applied)
        hooks.off()

    hooks = session.hook(NAME, session.torch.cuda._lazy_init, starting)
    session.on_cuda.append(started)


def _unblocking(applied):
    def prepare():
        value = os.environ.get(_BLOCKING)
        if value not in _OFF:
            del os.environ[_BLOCKING]
            applied.opposed(value)

    return prepare


def _unblocked(_, applied):
    if applied.is_opposed:
        applied.act()


def _expanding(applied):
    def prepare():
        for name in [name for name, _ in _ALLOCATORS if name in os.environ]:
            settings = [item.strip() for item in os.environ[name].split(",")]
            asked = next((item for item in settings if item.startswith(_EXPANDABLE)), None)
            if asked not in (None, _EXPANDABLE + ":True"):
                applied.opposed(asked)
            os.environ[name] = _with_expandable([item for item in settings if item != asked])

    return prepare


def _with_expandable(settings):
    return ",".join([*filter(None, settings), _EXPANDABLE + ":True"])


def _expanded(torch, applied):
    """The allocator has read its settings by now, perhaps before they were ours: it is told of all of them."""
    setter = next((setter for _, setter in _ALLOCATORS if hasattr(torch._C, setter)), None)
    if setter is None:
        applied.fail("this version of torch has no way to set it")
        return
    settings = next((os.environ[name] for name, _ in _ALLOCATORS if name in os.environ), _with_expandable([]))
    try:
        getattr(torch._C, setter)(settings)
        applied.act()
    except Exception as error:
        applied.fail("the allocator does not take it: %r" % (error,))


_BEFORE = {"launch-blocking": _unblocking, "allocator": _expanding}
_AFTER = {"launch-blocking": _unblocked, "allocator": _expanded}

"""What is decided when CUDA starts: whether each launch is waited for, and how the allocator's segments grow."""

import os

NAME = "overrides of how CUDA starts"
CODES = ("launch-blocking", "allocator")
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_OFF = (None, "", "0")
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # torch 2.9 and later read the second too
_EXPANDABLE = "expandable_segments"
# Functions of torch._C that change the allocator's settings while it is in use; newer versions have the first.
_SETTERS = ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings")


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
        for name in _ALLOCATOR:
            settings = os.environ.get(name, "").split(",")
            present = next((item for item in settings if item.strip().startswith(_EXPANDABLE)), None)
            if present is not None and present.strip() != _EXPANDABLE + ":True":
                applied.opposed(present.strip())
            others = [item for item in settings if item and item is not present]
            os.environ[name] = ",".join([*others, _EXPANDABLE + ":True"])

    return prepare


def _expanded(torch, applied):
    """The allocator may have read its settings before the program's were replaced: it is told again."""
    setter = next((getattr(torch._C, name) for name in _SETTERS if hasattr(torch._C, name)), None)
    try:
        setter(os.environ[_ALLOCATOR[0]])
        applied.act()
    except Exception as error:
        applied.fail("the allocator does not take it: %r" % (error,))


_BEFORE = {"launch-blocking": _unblocking, "allocator": _expanding}
_AFTER = {"launch-blocking": _unblocked, "allocator": _expanded}

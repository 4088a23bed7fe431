"""Whether another thread of the program may train, evaluate or load: while none may, no hook asks which one runs."""

import threading

NAME = "other threads"
# Their threads move data or write logs, and run nothing of the program's. Not multiprocessing.pool, whose threads do.
_HARMLESS = (
    "torch.utils.data.",
    "multiprocessing.queues",
    "multiprocessing.resource_sharer",
    "tensorboard.",
    "rich.",
    "tqdm.",
    "wandb.",
)


def install(session):
    log = session.log

    def starts(thread):
        if not _is_harmless(thread):
            log.alone = False

    session.hook(NAME, threading.Thread.start, starts, names=("self",))
    log.alone = not any(
        thread is not threading.current_thread() and not _is_harmless(thread) for thread in threading.enumerate()
    )


def _is_harmless(thread):
    runs = getattr(thread, "_target", None) or type(thread)
    return (getattr(runs, "__module__", None) or "").startswith(_HARMLESS)

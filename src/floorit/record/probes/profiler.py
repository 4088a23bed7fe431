"""Profilers that the program starts itself: the kernel window must be out of their way."""

NAME = "the program's own profiler"


def install(session):
    from torch.autograd import profiler

    for starts in (profiler.profile._prepare_trace, profiler.emit_nvtx.__enter__, profiler.emit_itt.__enter__):
        session.hook(NAME, starts, session.profiler_starts)

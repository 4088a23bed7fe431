"""What the windows must know of: profilers and histories that the program starts itself, and CUDA graphs."""

NAME = "the program's own profiler"


def install(session):
    from torch.autograd import profiler
    from torch.cuda import graphs, memory

    for starts in (profiler.profile._prepare_trace, profiler.emit_nvtx.__enter__, profiler.emit_itt.__enter__):
        session.hook(NAME, starts, session.windows.profiler_starts)
    session.hook(NAME, graphs.CUDAGraph.capture_begin, session.graph_begins)
    session.hook(NAME, memory._record_memory_history, session.windows.history_starts)

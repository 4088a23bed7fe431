"""Inside the loader's workers (and in the training process where there are none): samples, collate, sending."""

from time import perf_counter_ns

from ..wire import IN_PROCESS

NAME = "loader workers"


def install(session):
    from torch.utils.data._utils import fetch, worker

    sent = [0]  # nanoseconds of sending not yet booked to a row
    fetches = []

    def time_fetch():
        """Time the next batch. In a worker each is, in this process only some."""
        for hooks in fetches:
            hooks.reset()

    def enter_fetch(fetcher, index):
        if session.is_worker:
            session.sampler.awake[0] = True
        elif not session.mine():
            return None
        watched = session.operations.begin()
        return [perf_counter_ns(), 0, len(index) if fetcher.auto_collation else 1, watched]

    def collating(token):
        token[1] = perf_counter_ns()

    def leave_fetch(token):
        now = perf_counter_ns()
        started, collate, samples, watched = token
        if watched:
            session.operations.end(samples, now - started)
        collate = collate or now
        number = _number(worker) if session.is_worker else IN_PROCESS
        session.fetches.append((now, samples, number, collate - started, now - collate, sent[0]))
        sent[0] = 0
        if session.is_worker:
            session.sampler.awake[0] = False
            return
        for hooks in fetches:
            hooks.rest()

    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        names = ("self", "possibly_batched_index")
        fetches.append(session.hook(NAME, fetcher.fetch, enter_fetch, leave_fetch, returning=collating, names=names))
    session.time_fetch = time_fetch

    def enter_loop():
        session.become_worker()
        session.operations.forget()
        time_fetch()
        session.sampler.awake = [False]
        session.sampler.start()
        _time_sending(session, sent)
        return True

    def leave_loop(_):
        session.close()

    session.hook(NAME, worker._worker_loop, enter_loop, leave_loop)
    _time_receiving(session)


def _number(worker):
    info = worker._worker_info
    return info.id if info is not None else IN_PROCESS


def _time_sending(session, sent):
    """In a worker: a batch is pickled, its tensors moved to shared memory, by the queue's own thread."""
    from multiprocessing.reduction import ForkingPickler

    def leave(started):
        sent[0] += perf_counter_ns() - started

    session.hook(NAME, ForkingPickler.dumps, perf_counter_ns, leave)


def _time_receiving(session):
    """In the training process: it is unpickled, by the training thread or the one that pins memory."""
    from multiprocessing.reduction import ForkingPickler

    loads = ForkingPickler.loads

    def timed(*args, **kwargs):
        started = perf_counter_ns()
        value = loads(*args, **kwargs)
        session.received[0] += 1
        session.received[1] += perf_counter_ns() - started
        return value

    session.patches.replace(ForkingPickler, "loads", staticmethod(timed))

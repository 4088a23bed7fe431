"""Counting what a step computes and moves, in a floor run: for a few steps of its warm-up, at the loop's borders.

The steps are slower for it, so they lie between the words WINDOW_IN and WINDOW_OUT and are in no other figure. What
lies between two borders is noted by itself; which of that makes up an iteration, the analysis decides.
"""

from threading import get_ident
from time import perf_counter_ns

from . import products, traffic
from .compiling import compilations
from .modulepath import ModulePaths
from .products import BACKWARD, FORWARD, RECOMPUTE
from .wire import FLOPS as NAME
from .wire import KIND, NEXT_FRESH_IN, NEXT_IN, WINDOW_IN, WINDOW_OUT

AFTER = 2  # backward passes before it begins: until then libraries and the optimizers' state are being made
# It ends after so many batches; where no loader hands them out, after so many borders; at the latest after so long.
BATCHES, BORDERS = 4, 16
LIMIT = 20.0  # seconds
TRIES = 3  # times that it begins again after the program has forked


def install(session, _):
    """Have this process, and what it forks, counted once."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    log = session.log

    def stepped(optimizer, args, kwargs):
        if log.counting is not None:
            log.counting.stepped(optimizer)

    session.make_counting = lambda: Counting(session)
    log.counting = session.make_counting()
    register_optimizer_step_post_hook(stepped)  # for good: a border may lie inside of the step, where hooks must stay
    _make_way(session)


def _make_way(session):
    """torch.func refuses to work while hooks on saved tensors are in force: ours are taken away before it asks."""
    owner, name = session.torch._C._autograd, "_saved_tensors_hooks_disable"
    refuse = getattr(owner, name)

    def refusing(*args):
        counting = session.log.counting
        if counting is not None:
            counting.keep_no_more()
        return refuse(*args)

    session.patches.replace(owner, name, refusing)


class Counting:
    """From the first border at which it may begin to the last, or to why there is no count."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._tries = TRIES
        self._is_open = False
        self._watch = None
        self._batches = self._stretches = 0  # that were counted

    def at_border(self, now, word):
        """A border has passed; whether the stretch that follows is being counted."""
        is_batch = word & KIND in (NEXT_IN, NEXT_FRESH_IN)
        try:
            if self._is_open:
                self._note_stretch(now, is_batch)
            elif self._log.backwards >= AFTER:
                self._open(now)
        except Exception as error:
            self._give_up("it failed: %r" % (error,))
        return self._is_open

    def stepped(self, optimizer):
        """An optimizer has made a step."""
        if self._is_open:
            self._watch.stepped(optimizer)

    def keep_no_more(self):
        """What is kept for the backward pass cannot be watched in this stretch, or not to its end."""
        if self._is_open and get_ident() == self._thread:
            self._watch.keep_no_more()

    def pause(self):
        """The program is about to fork, and a child must not inherit what watches: begin again later."""
        if self._is_open and self._watch.is_outermost():
            self._leave()
            self._tries -= 1
            if not self._tries:
                self._give_up("the program kept starting other processes while it was counted")

    def end(self):
        """The process ends."""
        if self._log.backwards:
            self._give_up("the program ended before it was over")

    # -- opening and closing ------------------------------------------------------------------------------------

    def _open(self, now):
        reason = self._obstacle()
        if reason is not None:
            self._give_up(reason)
            return
        self._thread, self._opened, self._begun = get_ident(), now, now
        self._log.events.append((now, WINDOW_IN))
        self._is_open = True
        self._watch = _Watch(self._session)
        self._trained = self._log.backwards

    def _leave(self):
        self._is_open = False
        watch, self._watch = self._watch, None
        try:
            if watch is not None:
                watch.close()
        finally:
            self._log.events.append((perf_counter_ns(), WINDOW_OUT))

    def _give_up(self, reason):
        if self._log.counting is self:
            self._log.counting = None
        try:
            if self._is_open:
                self._leave()
        except Exception as error:
            reason = "%s; and it could not be ended: %r" % (reason, error)
        if not self._stretches:
            self._session.missing(NAME, reason)

    def _obstacle(self):
        if compilations():
            return "torch.compile is in use: what its code computes cannot be seen"
        if self._session.has_graphs:
            return "the program uses CUDA graphs: what they compute cannot be seen"
        return None

    # -- stretches ----------------------------------------------------------------------------------------------

    def _note_stretch(self, now, is_batch):
        watch = self._watch
        if not watch.is_outermost():
            return  # the program has opened a mode of its own since: a later border will do
        reason = watch.failure or self._obstacle()
        if get_ident() != self._thread:
            reason = "another thread went on with the training"
        if reason is not None:
            self._give_up(reason)
            return
        self._session.writer.note(NAME, begin=self._begun, end=now, **watch.sum_up())
        self._begun = now
        self._stretches += 1
        if is_batch and self._log.backwards > self._trained:
            self._trained = self._log.backwards
            self._batches += 1
        is_enough = self._batches >= BATCHES or self._stretches >= BORDERS
        if is_enough or now - self._opened > LIMIT * 1e9:
            self._log.counting = None
            self._leave()
        else:
            watch.begin()


class _Watch:
    """What watches the program's operations, the tensors that autograd keeps, and the optimizers."""

    def __init__(self, session):
        torch = self._torch = session.torch
        from torch.autograd.graph import saved_tensors_hooks

        self._session = session
        self._log = session.log
        self.failure = None
        self._paths = ModulePaths(torch, self._is_recomputing)
        self._counter = products.Counter(torch, self._paths.current, self._current_pass)
        self._traffic = traffic.Traffic(torch)
        self._steps = []  # (id of an optimizer, what its step touches by device)
        self._mode = products.make_mode(torch, self._look)
        self._kept = saved_tensors_hooks(self._keep, lambda tensor: tensor)
        self._keeps = False
        self.begin()
        self._paths.install()
        self._mode.__enter__()

    def begin(self):
        """A stretch begins."""
        self._counter.begin()
        self._traffic.begin()
        self._paths.begin()
        del self._steps[:]
        if not self._keeps:
            try:
                self._kept.__enter__()
                self._keeps = True
            except RuntimeError:
                pass  # a border inside of torch.func

    def keep_no_more(self):
        """Until the next stretch."""
        if self._keeps:
            self._keeps = False
            self._kept.__exit__(None, None, None)

    def is_outermost(self):
        """Whether what was entered last is ours, so that it can be left."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        return _get_current_dispatch_mode() is self._mode

    def close(self):
        """Watch no more."""
        self._paths.remove()
        self._mode.__exit__(None, None, None)
        self.keep_no_more()

    def sum_up(self):
        """The stretch in numbers, of the device that computed most."""
        done = self._counter.done
        by_device = _added(done.flops, 0)
        device = max(by_device, key=by_device.get, default=None)
        flops = {key[1:]: count for key, count in done.flops.items() if key[0] == device}
        by_module = {}
        for (_, path, which), count in flops.items():
            of_module = by_module.setdefault(path, {})
            of_module[which] = of_module.get(which, 0) + count
        return {
            "device": device,
            "total": sum(flops.values()),
            "recomputed": _added(flops, 2).get(RECOMPUTE, 0),
            "by_dtype": _added(flops, 0),
            "recomputed_by_dtype": _added({k: n for k, n in flops.items() if k[2] == RECOMPUTE}, 0),
            "by_module": by_module,
            "bytes": self._traffic.sum_up(device),
            "step_bytes": [[number, touched[device]] for number, touched in self._steps if device in touched],
            "name": self._name_of(device),
            "unseen": sorted(done.unseen),
        }

    def _name_of(self, device):
        if device is None or not device.startswith("cuda"):
            return None
        return self._torch.cuda.get_device_properties(device).name

    # -- what the program does ----------------------------------------------------------------------------------

    def _look(self, function, args, kwargs, result):
        try:
            self._counter.look(function, args, kwargs, result)
            in_forward = self._paths.is_inside and not self._log.backward
            self._traffic.look(function, args, result, in_forward, self._log.backwards)
        except Exception as error:
            self.failure = "%s could not be counted: %r" % (function, error)

    def _keep(self, tensor):
        try:
            self._traffic.keep(tensor, self._log.backwards)
        except Exception as error:
            self.failure = "a tensor that is kept could not be counted: %r" % (error,)
        return tensor.detach()  # the tensor itself would keep its own graph alive

    def stepped(self, optimizer):
        try:
            self._steps.append((id(optimizer), traffic.of_step(self._torch, optimizer)))
        except Exception as error:
            self.failure = "an optimizer's step could not be counted: %r" % (error,)

    def _is_recomputing(self):
        return self._session.recomputing

    def _current_pass(self):
        if not self._log.backward:
            return FORWARD
        # A backward pass inside of what is computed again has no gradients of its own.
        return RECOMPUTE if self._session.recomputing and self._torch.is_grad_enabled() else BACKWARD


def _added(counts, part):
    """Counts by one part of their keys."""
    total = {}
    for key, count in counts.items():
        total[key[part]] = total.get(key[part], 0) + count
    return total

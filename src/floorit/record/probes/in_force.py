"""What is in force while the program trains, asked of torch itself a few times in a run, on the training thread."""

import functools
import os
import sys
import time
import weakref
from threading import get_ident

from ..compiling import compilations
from ..sampler import USER, caller
from ..traces import hide_ours

NAME = "settings in force"
AGAIN = 10  # times as many backward passes as at the last reading: then the next
_MOST_ENTRIES = 20  # of autocast that are looked at before it is taken for off
_MOST_TASKS = 256  # threads that are asked
_MOST_SET = 50  # times that a switch is set before its places are not looked up any more
VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "CUDA_LAUNCH_BLOCKING",
)


def install(session):
    from torch import backends
    from torch.amp import autocast_mode, grad_scaler

    readings = _Readings(session)
    session.readings = readings
    scaler = grad_scaler.GradScaler.__init__
    session.hook(NAME, autocast_mode.autocast.__enter__, readings.entered, names=("self",), gate=readings.entering)
    session.hook(NAME, scaler, readings.made_scaler, names=("self",))
    session.hook(NAME, backends.ContextProp.__set__, readings.was_set, names=("self",), gate=readings.setting)
    session.patches.replace(session.torch, "set_num_threads", readings.noting("threads", session.torch.set_num_threads))


class _Readings:
    """Reads, and keeps what can only be seen as it happens."""

    def __init__(self, session):
        self._session = session
        self._next = 1  # backward passes
        self._autocast = None
        self._entries = 0
        self._sets = 0
        self._scalers = []
        self._places = {}  # setting -> file, line and function that set it last
        self._switches = {id(value): name for name, value in _switches(session.torch)}
        self.entering = [True]
        self.setting = [True]

    # -- as it happens ------------------------------------------------------------------------------------------

    def entered(self, autocast):
        """A forward pass that is trained on may begin under autocast."""
        if get_ident() != self._session.log.thread or not self._session.torch.is_grad_enabled():
            return
        self._entries += 1
        if autocast._enabled:
            self._autocast = {"device": autocast.device, "dtype": str(autocast.fast_dtype).rpartition(".")[2]}
        if autocast._enabled or self._entries > _MOST_ENTRIES:
            self.entering[0] = False  # until the next reading

    def made_scaler(self, scaler):
        self._scalers = [ref for ref in self._scalers if ref() is not None] + [weakref.ref(scaler)]

    def was_set(self, switch):
        name = self._switches.get(id(switch))
        self._sets += 1
        self.setting[0] = self._sets < _MOST_SET
        if name is not None:
            self._note_place(name, *caller(2))

    def noting(self, name, function):
        """A function written in C that puts a setting in force, which can only be replaced."""

        @functools.wraps(function)
        def noted(*args, **kwargs):
            try:
                self._note_place(name, *caller(2))
            except Exception as error:
                self._session.missing(NAME, "where %s was set: %r" % (name, error))
            try:
                return function(*args, **kwargs)
            except BaseException:
                hide_ours()
                raise

        return noted

    def _note_place(self, name, frame, kind):
        if kind is USER:
            self._places[name] = (os.path.abspath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)

    # -- now and then -------------------------------------------------------------------------------------------

    def are_due(self):
        """Whether it is time to read."""
        return self._session.log.backwards >= self._next

    def has_autocast(self):
        """Whether a forward pass was seen under autocast since the last reading."""
        return self._autocast is not None

    def forget(self):
        """In a forked child: it has not trained yet."""
        self._next, self._autocast, self._entries = 1, None, 0

    def read(self, training=True):
        """One reading, into the record. It must not fail the border at which it is made."""
        session = self._session
        self._next = max(session.log.backwards, 1) * AGAIN
        try:
            session.writer.note("in_force", training=training, **self._reading())
        except Exception as error:
            session.missing(NAME, "the probe failed while running: %r" % (error,))
        self._autocast, self._entries = None, 0
        self.entering[0] = True

    def _reading(self):
        torch, log = self._session.torch, self._session.log
        return {
            "at": time.perf_counter(),
            "backwards": log.backwards,
            "cuda": torch.cuda.is_initialized(),
            "values": {**_values(torch), **self._scaling()},
            "autocast": self._autocast,
            "compiled": compilations() > 0,
            "casts": [name for name in _CASTING if name in sys.modules],
            "places": dict(self._places),
            "environ": {name: os.environ[name] for name in VARIABLES if name in os.environ},
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "cpu_seconds": time.process_time(),
            "preempted": _preempted(),
            "ddp": self._session.ddp_times(),
        }

    def _scaling(self):
        scalers = [scaler for scaler in (ref() for ref in self._scalers) if scaler is not None]
        if not scalers:
            return {}
        used = next((scaler for scaler in scalers if scaler._enabled), scalers[0])
        scale = getattr(used, "_scale", None)
        on_cpu = scale is not None and scale.device.type == "cpu"  # else asking would wait for the GPU
        found = {"grad_scaler": used._enabled, "grad_scaler.scale": float(scale) if on_cpu else None}
        steps, skipped = self._session.scaled_steps()
        if steps:
            found.update({"grad_scaler.steps": steps, "grad_scaler.skipped": skipped})
        return found


def _preempted():
    """How often threads of this process were pushed off their cores; None where the system does not say."""
    total = 0
    try:
        for task in os.listdir("/proc/self/task")[:_MOST_TASKS]:
            with open("/proc/self/task/%s/status" % task) as lines:
                total += sum(int(line.split()[1]) for line in lines if line.startswith("nonvoluntary_ctxt_switches"))
    except OSError:
        return None
    return total


# Libraries that keep numbers in half precision without autocast.
_CASTING = ("deepspeed", "apex", "transformer_engine", "torch.distributed.fsdp")


def _switches(torch):
    cudnn = type(torch.backends.cudnn)
    for name in ("benchmark", "deterministic", "enabled", "allow_tf32"):
        if name in vars(cudnn):
            yield "cudnn." + name, vars(cudnn)[name]


def _values(torch):
    cudnn = torch.backends.cudnn
    values = {
        "cudnn.benchmark": cudnn.benchmark,
        "cudnn.deterministic": cudnn.deterministic,
        "cudnn.enabled": cudnn.enabled,
        "cudnn.allow_tf32": _asked(lambda: cudnn.allow_tf32),
        "matmul.allow_tf32": _asked(lambda: torch.backends.cuda.matmul.allow_tf32),
        "float32_matmul_precision": _asked(torch.get_float32_matmul_precision),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly_detection": torch.is_anomaly_enabled(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }
    cv2 = sys.modules.get("cv2")
    if cv2 is not None:
        values["cv2_threads"] = _asked(lambda: cv2.getNumThreads())
    return values


def _asked(question):
    """An answer, or None: where a program mixes torch's old and new names for a precision, torch raises."""
    try:
        return question()
    except Exception:
        return None

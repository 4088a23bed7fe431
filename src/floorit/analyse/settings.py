"""Settings: what the program was told to use beside what was in force while it trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from floorit import replay
from floorit.analyse.iterations import Iterations
from floorit.declared import Declaration, Told, Value
from floorit.events import Place, Process

ACCUMULATION = 0.25  # of the declared accumulation by which the measured one may differ: the last batches of an epoch
_LOADER = {
    "num_workers": "workers",
    "batch_size": "batch_size",
    "prefetch_factor": "prefetch",
    "persistent_workers": "persistent",
    "pin_memory": "pin",
    "drop_last": "drop_last",
    "shuffle": "shuffle",
}
_DDP = ("find_unused_parameters", "static_graph", "gradient_as_bucket_view")
_OPTIMIZER = ("foreach", "fused", "capturable")
_MOST = 4  # loaders of a kind, and optimizers, that are told of
_HALF = ("float16", "bfloat16")
_OFF = "off"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `actual` is None where it could not be told, or where it does not apply."""

    name: str
    declared: Value = None
    declared_at: str | None = None  # file:line, or what of the command line
    actual: Value = None
    advised: Value = None
    ignored: bool = False  # whether what was declared is not what is in force
    set_at: Place | None = None  # the program's line that put the actual value in force, where it is known


class _Truth(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run while it trained."""

    process: Process
    iterations: Iterations
    reading: dict[str, Any]
    train_loaders: list[dict[str, Any]]
    eval_loaders: list[dict[str, Any]]
    autocast: str
    weights: list[str]  # types of the trained parameters
    ranks: int

    @property
    def on_cuda(self) -> bool:
        return bool(self.reading["cuda"])

    def loaders(self, scope: str) -> list[dict[str, Any]]:
        """Those that train, or those that evaluate."""
        return self.train_loaders if scope == "train" else self.eval_loaders


def compare(process: Process, iterations: Iterations, told: Told | None, ranks: int) -> list[Setting]:
    """Every setting that is known to be in force, with what was declared of it; none where nothing was read."""
    if not process.readings:
        return []
    truth = _truth(process, iterations, ranks)
    declared = told.declarations if told is not None else []
    return [_declared(setting, declared, truth) for setting in _actual(truth)]


def _truth(process: Process, iterations: Iterations, ranks: int) -> _Truth:
    reading = next((r for r in reversed(process.readings) if r["training"]), process.readings[-1])
    seen = [r["autocast"]["dtype"] for r in process.readings if r["autocast"]]
    return _Truth(
        process=process,
        iterations=iterations,
        reading=reading,
        train_loaders=process.loaders_of(process.trained_iterators()),
        eval_loaders=process.loaders_of(sorted(iterations.eval_iterators)),
        autocast=seen[-1] if seen else _OFF,
        weights=sorted({kind for o in process.optimizers.values() for kind in o.get("dtypes", ())}),
        ranks=ranks,
    )


# -- what is in force -------------------------------------------------------------------------------------------


def _actual(truth: _Truth) -> list[Setting]:
    return [*_of_loaders(truth), *_of_torch(truth), *_of_training(truth), *_of_the_process(truth)]


def _of_loaders(truth: _Truth) -> list[Setting]:
    found = []
    for scope, before in (("train", ""), ("eval", "eval.")):
        for number, loader in enumerate(_unlike(truth.loaders(scope), _LOADER.values())):
            place = _place(*(loader.get(f"made_{part}") for part in ("file", "line", "function")))
            which = f"{before}loader[{number}]." if number else before
            found += [
                Setting(name=which + name, actual=loader.get(fact), set_at=place) for name, fact in _LOADER.items()
            ]
    return found


def _of_torch(truth: _Truth) -> list[Setting]:
    places, values = truth.reading["places"], {**truth.reading["values"], **_scaling(truth.process)}
    found = [
        Setting(name=name, actual=value, set_at=_place(*places.get(name, (None, None, None))))
        for name, value in values.items()
        if name != "anomaly_detection"
    ]
    anomaly = bool((truth.process.rows["flags"] & replay.ANOMALY).any())
    half = next((kind for kind in truth.weights if kind in _HALF), None)
    autocast = f"off, weights in {half}" if half and truth.autocast == _OFF else truth.autocast
    return [
        *found,
        Setting(name="anomaly_detection", actual=anomaly),
        Setting(name="autocast", actual=autocast),
        Setting(name="torch.compile", actual=bool(truth.reading["compiled"])),
    ]


def _scaling(process: Process) -> dict[str, Any]:
    """What a GradScaler had come to when the program ended: its scale, and the steps that it did not take."""
    last = process.readings[-1]["values"]
    return {name: last[name] for name in last if name.startswith("grad_scaler.")}


def _of_training(truth: _Truth) -> list[Setting]:
    found = []
    by_batches = truth.iterations.border == "batches"
    found.append(Setting(name="accumulation", actual=round(truth.iterations.accumulation, 2) if by_batches else None))
    alike = ("name", "lr", *_OPTIMIZER)
    for number, optimizer in enumerate(_unlike(truth.process.optimizers.values(), alike)):
        name = f"optimizer[{number}]" if number else "optimizer"
        found.append(Setting(name=name, actual=optimizer["name"]))
        found.append(Setting(name=f"{name}.lr", actual=optimizer.get("lr")))
        found += [Setting(name=f"{name}.{o}", actual=_chosen(optimizer, o)) for o in _OPTIMIZER if o in optimizer]
        if not number:
            found.append(Setting(name="channels_last", actual=optimizer.get("channels_last")))
    ddp = truth.process.ddp
    if ddp is not None:
        found += [Setting(name=f"ddp.{name}", actual=ddp.get(name)) for name in _DDP]
        size = ddp.get("bucket_bytes_cap")
        found.append(Setting(name="ddp.bucket_cap_mb", actual=size / 2**20 if size else None))
    return found


def _unlike(many: Iterable[dict[str, Any]], facts: Iterable[str]) -> list[dict[str, Any]]:
    """Those that a report tells of: a program may make one like it for each epoch, or for each of many layers."""
    by_facts, keys = dict[tuple[str, ...], dict[str, Any]](), list(facts)
    for one in many:
        by_facts.setdefault(tuple(str(one.get(key)) for key in keys), one)
    return list(by_facts.values())[:_MOST]


def _chosen(optimizer: dict[str, Any], option: str) -> bool | None:
    """What is in force: where nothing is asked for, torch takes many tensors at once on a GPU, and is not fused.

    None where a record of old does not tell where its parameters are.
    """
    asked: bool | None = optimizer[option]
    if asked is not None or option == "fused":
        return bool(asked)
    devices = optimizer.get("devices")
    if option != "foreach" or not devices:
        return asked
    return not optimizer.get("fused") and "cpu" not in devices


def _of_the_process(truth: _Truth) -> list[Setting]:
    return [
        Setting(name="cores_allowed", actual=truth.reading["cores"]),
        Setting(name="ranks", actual=truth.ranks),
        *(Setting(name=name, actual=value) for name, value in truth.reading["environ"].items()),
    ]


def _place(file: str | None, line: int | None, function: str | None) -> Place | None:
    return Place(file, line or 0, function or "", "user") if file else None


# -- beside what was declared -----------------------------------------------------------------------------------


def _declared(setting: Setting, declared: list[Declaration], truth: _Truth) -> Setting:
    """The declaration that counts: by an argument before a file before a default, and of those one that is in force.

    A file may give a setting several values, in sections for one machine or another: it is ignored only if none of
    them is in force.
    """
    scope = "eval" if setting.name.startswith("eval.") else "train"
    name = setting.name.removeprefix("eval.")
    about = [d for d in declared if d.setting == name and d.scope == scope]
    first = next((by for by in ("argument", "file", "default") if any(d.by == by for d in about)), None)
    counted = [(d, _agrees(d, setting, truth)) for d in about if d.by == first]
    if not counted:
        return setting
    chosen, agrees = next(
        (pair for wanted in (True, None) for pair in counted if pair[1] is wanted),
        counted[-1],
    )
    return msgspec.structs.replace(
        setting, declared=chosen.value, declared_at=chosen.at, ignored=agrees is False and setting.actual is not None
    )


def _agrees(declaration: Declaration, setting: Setting, truth: _Truth) -> bool | None:
    """Whether a declaration is in force; None where that cannot be said."""
    if declaration.value is None or setting.actual is None:
        return None
    judge = _JUDGES.get(declaration.setting)
    return judge(declaration, setting, truth) if judge is not None else None


def _whole(value: Value) -> int | None:
    """A positive number or zero; anything else (`auto`, -1) leaves the choice to the program."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _switch(value: Value) -> bool | None:
    return bool(value) if isinstance(value, bool) or value in (0, 1) else None


def _same_switch(declaration: Declaration, setting: Setting, _: _Truth) -> bool | None:
    wanted = _switch(declaration.value)
    return None if wanted is None else wanted == bool(setting.actual)


def _same_number(declaration: Declaration, setting: Setting, _: _Truth) -> bool | None:
    wanted = _whole(declaration.value)
    return None if wanted is None else wanted == setting.actual


def _workers(declaration: Declaration, _: Setting, truth: _Truth) -> bool | None:
    """Of each rank, or of all together. A program that asks for the number of cores may have taken fewer on purpose."""
    wanted = _whole(declaration.value)
    if wanted is None:
        return None
    for loader in truth.loaders(declaration.scope):
        if loader["workers"] in (wanted, -(-wanted // truth.ranks)):
            return True
        if loader.get("asks_cores") and loader["workers"] < wanted:
            return None
    return False


def _batch(declaration: Declaration, _: Setting, truth: _Truth) -> bool | None:
    """Of a rank or of all, of a batch or of an optimizer step. A loader of single samples may load whole batches."""
    wanted = _whole(declaration.value)
    sizes = [loader["batch_size"] for loader in truth.loaders(declaration.scope)]
    if not wanted or any(size is None or size == 1 for size in sizes):
        return None
    steps = max(round(truth.iterations.accumulation), 1)
    return any(wanted == size * many for size in sizes for many in (1, truth.ranks, steps, truth.ranks * steps))


def _with_workers(declaration: Declaration, setting: Setting, truth: _Truth) -> bool | None:
    """What only workers make use of."""
    if not any(loader["workers"] for loader in truth.loaders(declaration.scope)):
        return None
    judge = _same_switch if declaration.setting == "persistent_workers" else _same_number
    return judge(declaration, setting, truth)


def _on_cuda(judge: Callable[[Declaration, Setting, _Truth], bool | None]) -> Callable[..., bool | None]:
    """What only CUDA makes use of: without it, a program may well leave it alone, unless it says otherwise itself."""

    def judged(declaration: Declaration, setting: Setting, truth: _Truth) -> bool | None:
        says_itself = setting.name in truth.reading["places"]
        return judge(declaration, setting, truth) if truth.on_cuda or says_itself else None

    return judged


def _deterministic(declaration: Declaration, setting: Setting, truth: _Truth) -> bool | None:
    wanted = _switch(declaration.value)
    values = truth.reading["values"]
    in_force = (values["cudnn.deterministic"], values["deterministic_algorithms"])
    return None if wanted is None else wanted in in_force


def _same_word(declaration: Declaration, setting: Setting, _: _Truth) -> bool | None:
    return str(declaration.value).lower() == str(setting.actual).lower()


_PRECISIONS = {
    "off": (_OFF,),
    "float16": ("float16",),
    "bfloat16": ("bfloat16",),
    "on": _HALF,
    "not float16": (_OFF, "bfloat16"),
    "not bfloat16": (_OFF, "float16"),
}
_PRECISION_WORDS = {
    **dict.fromkeys(("fp32", "float32", "32", "32-true", "full", "disabled"), "off"),
    **dict.fromkeys(("fp16", "float16", "half", "16", "16-mixed", "fp16-mixed"), "float16"),
    **dict.fromkeys(("bf16", "bfloat16", "bf16-mixed"), "bfloat16"),
    **dict.fromkeys(("mixed", "amp", "native"), "on"),
}


def _precision(declaration: Declaration, _: Setting, truth: _Truth) -> bool | None:
    """Autocast, or weights of that type; libraries that cast in other ways are beyond what can be said."""
    casts = truth.reading["casts"]
    if not truth.on_cuda or [name for name in casts if name != "torch.distributed.fsdp" or truth.ranks > 1]:
        return None
    word = _precision_word(declaration)
    if word is None:
        return None
    return truth.autocast in _PRECISIONS[word] or any(kind in _PRECISIONS[word] for kind in truth.weights)


def _precision_word(declaration: Declaration) -> str | None:
    kinds = (("bf", "bfloat16"), ("16", "float16"), ("half", "float16"))
    kind = next((kind for part, kind in kinds if part in declaration.key), None)
    if isinstance(declaration.value, bool):
        if kind is None:
            return "on" if declaration.value else "off"
        return kind if declaration.value else f"not {kind}"
    return _PRECISION_WORDS.get(str(declaration.value).lower())


def _accumulated(declaration: Declaration, setting: Setting, _: _Truth) -> bool | None:
    wanted = _whole(declaration.value)
    if not wanted or not isinstance(setting.actual, float):
        return None
    return abs(setting.actual - wanted) <= ACCUMULATION * wanted


def _cv2_threads(declaration: Declaration, setting: Setting, truth: _Truth) -> bool | None:
    """To OpenCV, 0 threads means: no more than the one that calls."""
    wanted = _whole(declaration.value)
    return None if wanted is None else max(wanted, 1) == setting.actual


# What is not here is shown, never judged: a learning rate is scaled and scheduled, `foreach` is torch's own choice.
_JUDGES: dict[str, Callable[..., bool | None]] = {
    "num_workers": _workers,
    "batch_size": _batch,
    "prefetch_factor": _with_workers,
    "persistent_workers": _with_workers,
    "pin_memory": _on_cuda(_same_switch),
    "drop_last": _same_switch,
    "shuffle": _same_switch,
    "cudnn.benchmark": _on_cuda(_same_switch),
    "cudnn.deterministic": _on_cuda(_deterministic),
    "matmul.allow_tf32": _on_cuda(_same_switch),
    "float32_matmul_precision": _on_cuda(_same_word),
    "autocast": _precision,
    "torch.compile": _same_switch,
    "channels_last": _same_switch,
    "accumulation": _accumulated,
    "optimizer.fused": _same_switch,
    "anomaly_detection": _same_switch,
    "ddp.find_unused_parameters": _same_switch,
    "ddp.static_graph": _same_switch,
    "ddp.gradient_as_bucket_view": _same_switch,
    "ddp.bucket_cap_mb": _same_number,
    "threads": _same_number,
    "cv2_threads": _cv2_threads,
}

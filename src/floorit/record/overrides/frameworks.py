"""How often a framework logs, evaluates and saves: so many times as rarely as the program tells it to.

A loop of the program's own decides that by itself: nothing of ours can tell which of its steps are due.
"""

import functools
import inspect

from ..imports import after_import
from ..traces import hide_ours

_RAW = "a loop of its own decides that by itself: floorit try and tune turn its own setting, where they see one"
_EACH_EPOCH = "transformers is told to do it at the end of each epoch, or never, and has no setting for rarer"
_TRAINERS = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")
_SAVERS = ("lightning.pytorch.callbacks.model_checkpoint", "pytorch_lightning.callbacks.model_checkpoint")
_LOG_EVERY = 50  # Lightning's own, where nothing is asked for
# code -> of transformers' TrainingArguments: when it is done, and after how many steps
_ARGUMENTS = {
    "log-every": ("logging_strategy", "logging_steps"),
    "eval-every": ("eval_strategy", "eval_steps"),
    "checkpoint-every": ("save_strategy", "save_steps"),
}
_AT_THE_END = 1 - 1e-9  # of all steps: what is below 1 means a share of them
_OLD_NAMES = {"eval_strategy": "evaluation_strategy"}
CODES = (*_ARGUMENTS, "from-batch")


def install(session, asked):
    for applied in asked.values():
        applied.unmet(_RAW)
    asked = {code: applied for code, applied in asked.items() if code in _ARGUMENTS}
    for name in _TRAINERS:
        after_import(name, lambda module: _change_init(session, module.Trainer, asked, _in_trainer))
    for name in _SAVERS:
        after_import(name, lambda module: _change_init(session, module.ModelCheckpoint, asked, _in_saver))
    after_import(
        "transformers.training_args", lambda module: _change_arguments(session, module.TrainingArguments, asked)
    )


def _change_init(session, kind, asked, change):
    """Have `change` see the arguments that an object of Lightning's is made with, and say which are to be others."""
    make = kind.__init__
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args, **kwargs):
        try:
            args, kwargs = _changed(signature, asked, change, args, kwargs)
            make(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    session.patches.replace(kind, "__init__", made)


def _changed(signature, asked, change, args, kwargs):
    try:
        given, whole = (signature.bind(*args, **kwargs) for _ in range(2))
        whole.apply_defaults()
        given.arguments.update(change(whole.arguments, asked))
        return given.args, given.kwargs
    except Exception as error:
        for applied in asked.values():
            applied.fail("what Lightning is given could not be changed: %r" % (error,))
        return args, kwargs


def _in_trainer(given, asked):
    changes = {}
    if "log-every" in asked:
        own = given["log_every_n_steps"]
        changes.update(_rarer(asked["log-every"], "log_every_n_steps", _LOG_EVERY if own is None else own))
    if "eval-every" in asked:
        applied, interval = asked["eval-every"], given["val_check_interval"]
        is_within_epoch = type(interval) is float and interval * applied.value <= 1
        by_batches = given["check_val_every_n_epoch"] is None or is_within_epoch
        name = "val_check_interval" if by_batches else "check_val_every_n_epoch"
        changes.update(_rarer(applied, name, given[name]))
    return changes


def _in_saver(given, asked):
    if "checkpoint-every" not in asked:
        return {}
    names = ("every_n_train_steps", "train_time_interval", "every_n_epochs")
    name = next((name for name in names if given[name]), "every_n_epochs")
    return _rarer(asked["checkpoint-every"], name, 1 if given[name] is None else given[name])


def _rarer(applied, name, own):
    """{name: so many times what the program asks for}, where that is a number, or a time, and not never."""
    if not own or isinstance(own, str):
        applied.unmet("Lightning is told %s=%r" % (name, own))
        return {}
    applied.overrule("%s=%r" % (name, own))
    return {name: own * applied.value}


def _change_arguments(session, kind, asked):
    """Once they are complete: classes derived from it have an `__init__` of their own, but call this."""
    complete = kind.__post_init__

    @functools.wraps(complete)
    def completed(self, *args, **kwargs):
        try:
            complete(self, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        for code, applied in asked.items():
            try:
                _make_rarer(session, self, code, applied)
            except Exception as error:
                applied.fail("what transformers is given could not be changed: %r" % (error,))

    session.patches.replace(kind, "__post_init__", completed)


def _make_rarer(session, arguments, code, applied):
    strategy, name = _ARGUMENTS[code]
    when = getattr(arguments, strategy, None) or getattr(arguments, _OLD_NAMES.get(strategy, strategy), None)
    own = getattr(arguments, name)
    if getattr(when, "value", when) != "steps" or not own:
        applied.unmet(_EACH_EPOCH)
        return
    rarer = own * applied.value
    session.patches.assign(arguments, name, min(rarer, _AT_THE_END) if own < 1 else rarer)
    applied.overrule("%s=%r" % (name, own))

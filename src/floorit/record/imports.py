"""Calls back once a module has been imported; changes nothing about how it is."""

import sys

_waiting = {}


def after_import(name, callback):
    """Call `callback(module)` as soon as `name` is imported, or now if it is."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback(module)
        return
    if not _waiting:
        sys.meta_path.insert(0, _Finder)
    _waiting.setdefault(name, []).append(callback)


class _Finder:
    """Finds nothing itself: it lets the others find, and hears of it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is _Finder or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if hasattr(spec.loader, "exec_module"):
            _listen(name, spec.loader)
        return spec


def _listen(name, loader):
    execute = loader.exec_module

    def exec_module(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        execute(module)
        callbacks = _waiting.pop(name, ())
        if not _waiting and _Finder in sys.meta_path:
            sys.meta_path.remove(_Finder)
        for callback in callbacks:
            try:
                callback(module)
            except Exception:
                pass  # the import must not notice; a probe that matters reports its own failure

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # a loader that cannot be listened to: the module stays as it is

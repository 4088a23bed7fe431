"""Functions of libraries that the program may import, by name: what is spent in them is booked to a phase."""

from .imports import after_import


def hook_booked(session, functions, phase):
    """Watch {module: names in it, as `function` or `Class.method`} once each module has been imported."""
    for module, names in functions.items():
        after_import(module, _hooking(session, names, phase))


def _hooking(session, names, phase):
    def hook(module):
        for name in names:
            owner, _, method = name.rpartition(".")
            function = getattr(getattr(module, owner, None) if owner else module, method, None)
            if function is None:
                continue  # this version of the library has none
            try:
                session.hook_phase(function, phase)
            except Exception as error:
                session.missing("%s of %s" % (name, module.__name__), repr(error))

    return hook

"""The recorder: what runs inside the user's process. The standard library and the user's own torch, nothing else."""


from .imports import after_import


def arm(folder):
    """Wait for torch; a process that never imports it is left alone."""
    after_import("torch", lambda torch: _install(folder, torch))


def _install(folder, torch):
    from . import probes
    from .session import Session

    session = Session(folder, torch)
    for name, install in probes.ALL:
        try:
            install(session)
        except Exception as error:
            session.missing(name, "the probe could not be installed: %r" % (error,))
    session.clock.reset()
    session.steps.reset()



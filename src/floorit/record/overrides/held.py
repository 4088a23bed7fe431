"""A function that sets something of torch's: whatever the program calls it with, it sets what is wanted."""

import functools


def hold(session, applied, owner, name, wanted, *, opposed=None):
    """Replace the setter `owner.name(value, …)`. `opposed(value)` is told of another value; else the override is."""
    setter = getattr(owner, name)
    opposed = opposed or applied.opposed_here

    @functools.wraps(setter)
    def held(value, *args, **kwargs):
        if value != wanted:
            opposed(value)
        return setter(wanted, *args, **kwargs)

    session.patches.replace(owner, name, held)
    return setter

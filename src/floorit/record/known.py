"""What is known of an object that is not ours, found by its identity and forgotten when it is gone."""

import weakref


class Known(dict):
    """id of an object -> what is known of it. Looking it up is `known.get(id(thing))`, which runs no code of theirs."""

    __slots__ = ("_alive",)

    def __init__(self):
        self._alive = {}

    def learn(self, thing, value):
        """Keep `value` for as long as `thing` lives."""
        key = id(thing)

        def gone(_):
            self.pop(key, None)
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(thing, gone)
        self[key] = value
        return value

    def alive(self):
        """(object, what is known of it)."""
        found = [(ref(), self.get(key)) for key, ref in list(self._alive.items())]
        return [(thing, value) for thing, value in found if thing is not None and value is not None]

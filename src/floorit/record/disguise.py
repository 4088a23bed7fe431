"""What stands in for a function written in C: to the program it is that function, as far as it can ask."""

from pkgutil import resolve_name


class Disguise:
    """A callable that passes for a function; what it does when it is called, its kinds say."""

    def __init__(self, function, place):
        self._function = function
        self._place = place  # "module:name", by which the function is found
        self.__doc__, self.__module__ = function.__doc__, getattr(function, "__module__", None)

    @property
    def __class__(self):
        return type(self._function)

    def __getattr__(self, name):
        return getattr(self._function, name)

    def __eq__(self, other):
        return other is self or other is self._function

    def __hash__(self):
        return hash(self._function)

    def __repr__(self):
        return repr(self._function)

    def __reduce__(self):
        return resolve_name, (self._place,)

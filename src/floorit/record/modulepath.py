"""Which module is at work: in the forward pass by its calls, in the backward pass by what it made there.

Nodes of the graph are numbered as they are made, so the numbers that a module's call began and ended with tell the
nodes that are its own. No tensor is touched for it.
"""

from bisect import bisect_right

from .known import Known

OUTSIDE = ""  # the path of what no module computes


class ModulePaths:
    """The path of the module at work, named as in `named_modules` of the outermost one, below its class."""

    def __init__(self, torch, is_recomputing):
        self._torch = torch
        self._is_recomputing = is_recomputing
        self._next_number = torch.autograd._get_sequence_nr
        self._current_node = getattr(torch._C, "_current_autograd_node", lambda: None)
        self._names = Known()
        self._open = []  # (module, its path)
        # Where paths change: numbers of nodes, and the path from there on. What is computed again may be numbered by
        # a thread of its own, and has its own.
        self._changes = {False: ([], []), True: ([], [])}
        self._handles = []

    def install(self):
        """Begin to watch calls of modules."""
        from torch.nn.modules import module

        self._handles = [
            module.register_module_forward_pre_hook(self._enter),
            module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def remove(self):
        """End it."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        del self._open[:]

    def begin(self):
        """A stretch begins: what earlier ones made has been used."""
        if not self._open:
            self._changes = {False: ([], []), True: ([], [])}

    @property
    def is_inside(self):
        """Whether a module is being called."""
        return bool(self._open)

    def current(self):
        """The path of the module that computes now."""
        if self._open:
            return self._open[-1][1]
        node = self._current_node()
        if node is None:
            return OUTSIDE
        numbers, paths = self._changes[bool(self._is_recomputing())]
        at = bisect_right(numbers, node._sequence_nr()) - 1
        return paths[at] if at >= 0 else OUTSIDE

    def _enter(self, module, args):
        self._open.append((module, self._path(module)))
        self._changed()

    def _leave(self, module, args, result):
        while self._open and self._open.pop()[0] is not module:
            pass  # one that ended by an exception
        self._changed()

    def _changed(self):
        numbers, paths = self._changes[bool(self._is_recomputing())]
        numbers.append(self._next_number())
        paths.append(self._open[-1][1] if self._open else OUTSIDE)

    def _path(self, module):
        name = self._names.get(id(module))
        if name is None:
            root = type(module).__name__
            for inner, each in module.named_modules():
                if id(each) not in self._names:
                    self._names.learn(each, "%s.%s" % (root, inner) if inner else root)
            name = self._names[id(module)]
        return name

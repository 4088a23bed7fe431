"""Config files in Python: names become entries, `_base_` is another file that they are merged into."""

import runpy
from pathlib import Path


class Config(dict):
    """A dict whose entries are attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def fromfile(cls, path):
        names = {k: v for k, v in runpy.run_path(str(path)).items() if not k.startswith("__")}
        base = names.pop("_base_", None)
        cfg = cls.fromfile(Path(path).parent / base) if base else cls()
        cfg.merge(names)
        return cfg

    def replace(self, path, value):
        """The entry at the end of a path; it must be there."""
        *parents, name = path
        node = self
        for parent in parents:
            node = node.get(parent) if isinstance(node, Config) else None
        if not isinstance(node, Config) or name not in node:
            raise SystemExit(f"the config has no entry {'.'.join(path)}")
        node[name] = value

    def merge(self, other):
        """Replace entries; dicts are merged."""
        for name, value in (other or {}).items():
            if isinstance(value, dict):
                if not isinstance(self.get(name), Config):
                    self[name] = Config()
                self[name].merge(value)
            else:
                self[name] = value

"""How DistributedDataParallel is made."""

import functools
import inspect

from ..imports import after_import
from ..traces import hide_ours

# code -> the argument that it is
_ARGUMENTS = {
    "static-graph": "static_graph",
    "bucket-view": "gradient_as_bucket_view",
    "bucket-mb": "bucket_cap_mb",
}
CODES = tuple(_ARGUMENTS)


def install(session, asked):
    after_import("torch.nn.parallel.distributed", lambda module: _replace(session, asked, module))


def _replace(session, asked, module):
    ddp = module.DistributedDataParallel
    make = ddp.__init__
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args, **kwargs):
        try:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            for code, applied in asked.items():
                name = _ARGUMENTS[code]
                if given.arguments[name] != applied.value:
                    applied.opposed_here(given.arguments[name])
                given.arguments[name] = applied.value
            make(*given.args, **given.kwargs)
        except BaseException:
            hide_ours()
            raise
        for applied in asked.values():
            applied.act()

    session.patches.replace(ddp, "__init__", made)

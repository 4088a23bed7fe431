"""Fixes, applied inside the program: one file for each group, with the codes it knows and `install(session, asked)`."""

import json

from . import (
    accumulating,
    ahead,
    batches,
    capping,
    decoding,
    device,
    eightbit,
    frameworks,
    loader,
    model,
    optimizer,
    ranks,
    switches,
    threads,
    transfers,
)
from .applied import Applied

GROUPS = (
    *(loader, batches, threads, decoding, transfers, ahead),
    *(model, optimizer, eightbit, accumulating),
    *(switches, device, ranks, frameworks, capping),
)


def install(session, text):
    """Put in force what wire.FIXES asks for: {code of the fix: value}."""
    asked = {code: Applied(session, code, value) for code, value in json.loads(text).items()}
    session.overrides_told = lambda: [applied.close() for applied in asked.values()]
    for group in GROUPS:
        own = {code: asked[code] for code in group.CODES if code in asked}
        try:
            if own:
                group.install(session, own)
        except Exception as error:
            for applied in own.values():
                applied.fail("it could not be installed: %r" % (error,))
    for code in set(asked).difference(*(group.CODES for group in GROUPS)):
        asked[code].fail("the recorder knows no such override")

"""Debugging switches left on: before all else, whatever they cost."""

from __future__ import annotations

from floorit import replay
from floorit.analyse import traces
from floorit.analyse.ledger import Line
from floorit.diagnose import Facts, Finding, bound_of

_CODE = "debug-left-on"
_TITLES = {
    "detect_anomaly": "autograd's anomaly detection is on",
    "CUDA_LAUNCH_BLOCKING": "CUDA_LAUNCH_BLOCKING is set: every kernel is waited for",
    "TORCH_DISTRIBUTED_DEBUG": "TORCH_DISTRIBUTED_DEBUG is set: every collective is checked",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_CUDA_MEMORY_CACHING is set: every tensor is a cudaMalloc",
}


def find(facts: Facts) -> list[Finding]:
    """One finding for each switch that was on while the program trained."""
    in_force = bool((facts.process.rows["flags"] & replay.ANOMALY).any())
    findings = []
    for name in dict.fromkeys(switch["name"] for switch in facts.process.switches):
        switch = next(s for s in facts.process.switches if s["name"] == name)
        if name == "detect_anomaly":
            findings += [_anomaly(facts, switch)] if in_force else []
        elif _costs(facts, name, switch):
            findings.append(_unknown(name, switch))
    return findings


def _costs(facts: Facts, name: str, switch: dict[str, object]) -> bool:
    """Whether a variable slows anything down here: CUDA's need a GPU, and only DETAIL checks collectives."""
    if name == "TORCH_DISTRIBUTED_DEBUG":
        return str(switch.get("value")).upper() == "DETAIL"
    return facts.needs.gpu is not None or "CUDA" not in name


def _unknown(name: str, switch: dict[str, object]) -> Finding:
    return Finding(
        code=_CODE,
        title=_TITLES.get(name, f"{name} is set"),
        share=None,
        bound=None,
        evidence=["what it costs cannot be told from the ledger: run once without it"],
        where=_where(switch),
    )


def _anomaly(facts: Facts, switch: dict[str, object]) -> Finding:
    """Its stack traces are timed. What it costs besides is among the operations and cannot be told from them.

    With twelve small layers it was 70 % of the step, the traces 50 %, the rest not only in backward: so no bound.
    """
    known = traces.share(facts.process, facts.iterations)
    if known is None:
        return _unknown("detect_anomaly", switch)
    return Finding(
        code=_CODE,
        title=_TITLES["detect_anomaly"],
        share=known,
        share_is_least=True,
        bound=None,
        evidence=[
            f"{known:.0%} of the step formats stack traces for it: without them about {bound_of(known):.2f}x as fast;"
            " its checks of every gradient, in the backward pass, come on top and cannot be told from it"
        ],
        where=_where(switch),
    )


def _where(switch: dict[str, object]) -> list[Line]:
    if not switch.get("file"):
        return []
    return [Line(file=str(switch["file"]), line=int(str(switch["line"])), function=str(switch["function"]), share=1.0)]

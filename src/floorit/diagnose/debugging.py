"""Debugging switches left on: before all else, whatever they cost."""

from __future__ import annotations

from floorit import replay
from floorit.analyse.ledger import Line
from floorit.diagnose import Facts, Finding, bound_of

_TITLES = {
    "detect_anomaly": "autograd's anomaly detection is on",
    "CUDA_LAUNCH_BLOCKING": "CUDA_LAUNCH_BLOCKING is set: every kernel is waited for",
    "TORCH_DISTRIBUTED_DEBUG": "TORCH_DISTRIBUTED_DEBUG is set: every collective is checked",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_CUDA_MEMORY_CACHING is set: every tensor is a cudaMalloc",
}
# Anomaly detection formats a stack trace for each operation of the forward pass: its own share of the samples.
_TRACEBACK_FILES = ("traceback.py", "linecache.py")


def find(facts: Facts) -> list[Finding]:
    """One finding for each switch that was on while the program trained."""
    in_force = bool((facts.process.rows["flags"] & replay.ANOMALY).any())
    findings = []
    for name in dict.fromkeys(switch["name"] for switch in facts.process.switches):
        if name == "detect_anomaly" and not in_force:
            continue
        switch = next(s for s in facts.process.switches if s["name"] == name)
        share = _traceback_share(facts) if name == "detect_anomaly" else None
        findings.append(
            Finding(
                code="debug-left-on",
                title=_TITLES.get(name, f"{name} is set"),
                share=share,
                bound=bound_of(share) if share is not None else None,
                evidence=_evidence(share),
                where=_where(switch),
            )
        )
    return findings


def _evidence(share: float | None) -> list[str]:
    if share is None:
        return ["what it costs cannot be told from the ledger: run once without it"]
    return [f"{share:.0%} of the step formats stack traces for it; its checks in the backward pass come on top"]


def _where(switch: dict[str, object]) -> list[Line]:
    if not switch.get("file"):
        return []
    return [Line(file=str(switch["file"]), line=int(str(switch["line"])), function=str(switch["function"]), share=1.0)]


def _traceback_share(facts: Facts) -> float:
    total = traced = 0
    for sample in facts.process.samples:
        total += 1
        if sample.leaf is not None and sample.leaf.file.endswith(_TRACEBACK_FILES):
            traced += 1
    return traced / total if total else 0.0

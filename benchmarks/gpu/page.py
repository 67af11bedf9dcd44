"""The page of `benchmarks.gpu_check`: outcome, machine, every comparison with its bound, the federation, throughput."""

import math
from typing import Any, Final

from secure_kg.report.html import Html, bullets, chip, document, quiet, section, stacked_table, table, tag

_NONE: Final = "–"


def verdict(report: dict[str, Any]) -> str:
    """The outcome in a sentence or two."""
    held = sum(one["holds"] for one in report["compared"])
    of = f"{held} of {len(report['compared'])} comparisons hold"
    if report["gpus"]:
        return f"Checked on {', '.join(one['name'] for one in report['gpus'])}: {of}."
    return (
        f"No GPU was found on this machine: the GPU columns are missing. What was checked: {of} on a pretended GPU "
        "(values in the memory of the CPU, routes and rules of a GPU), the federation on the CPU. Last bits, speed and "
        "memory of a GPU were not."
    )


def page(report: dict[str, Any]) -> str:
    """One file, without scripts and without the network."""
    title = "GPU check" if report["gpus"] else "GPU check: no GPU was there"
    return document(
        title,
        tag("h1", title),
        tag("p", verdict(report)),
        section("machine", "The machine", _machine(report)),
        section("compared", "What was compared", *_compared(report)),
        section("bounds", "How far apart, and why so far is allowed", *_bounds(report)),
        section("federation", "A federation under mpirun", *_federation(report)),
        section("speed", "Throughput", *_speed(report)),
        quiet(f"{report['command']}, commit {report['commit'] or 'unknown'}"),
    )


def _machine(report: dict[str, Any]) -> Html:
    gpus = [
        f"GPU {one['number']}: {one['name']}, compute capability {one['capability']}, {one['megabytes']:,} MB"
        for one in report["gpus"]
    ]
    driver = f", driver {report['driver']}" if report["driver"] else ""
    return bullets(
        [*(gpus or ["no GPU that torch can use"]), f"torch {report['torch']}, CUDA {report['cuda'] or 'none'}{driver}",
         report["cpu"], f"Python {report['python']}"]
    )  # fmt: skip


def _outcome(holds: bool) -> Html:
    return chip("holds" if holds else "does not hold", "yes" if holds else "no")


def _named(device: str) -> str:
    return "pretended GPU" if device == "pretended" else device


def by_name(report: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """For each device and what was compared on it: what was looked at, and whether all of it holds."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in report["compared"]:
        found.setdefault((_named(one["device"]), one["name"]), []).append(one)
    return [
        (device, name, ", ".join(one["what"] for one in ones), all(one["holds"] for one in ones))
        for (device, name), ones in found.items()
    ]


def by_bound(report: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """For each bound: what has it, the largest difference and whose it is, the bound, and the reason for it."""
    found: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for one in report["compared"]:
        found.setdefault((one["what"], one["allowed"], one["reason"]), []).append(one)
    lines = []
    for (what, allowed, reason), ones in found.items():
        worst = max(ones, key=lambda one: math.inf if math.isnan(one["difference"]) else one["difference"])
        largest = f"{worst['difference']:.2g} ({worst['name']})" if worst["difference"] else "0"
        lines.append((what, largest, f"{allowed:.2g}", reason, f"{sum(one['holds'] for one in ones)} of {len(ones)}"))
    return lines


def _compared(report: dict[str, Any]) -> list[Html]:
    names = [[device, name, what, _outcome(holds)] for device, name, what, holds in by_name(report)]
    told = "Two runs are of the same settings on the same device; one is saved after a round and resumed."
    return [quiet(told), stacked_table(("device", "learner or kernel", "what was compared", "outcome"), names)]


def _bounds(report: dict[str, Any]) -> list[Html]:
    told = "Differences are shares of the largest value. n is the number of terms of the longest sum."
    head = ("what", "largest difference", "allowed", "because", "hold")
    return [quiet(told), stacked_table(head, by_bound(report))]


def _federation(report: dict[str, Any]) -> list[Html]:
    if (twins := report["federation"]) is None:
        return [quiet("left out")]
    where = "one rank per GPU" if report["gpus"] else "on the CPU, since there is no GPU"
    lines = [
        f"{twins['ranks']} ranks, --device {twins['device']}: {where}",
        _told("secure aggregation and its plain twin end with the same models and MRR", twins["secure_as_plain"]),
        _told("the secure job again ends with the same models and MRR", twins["repeated"]),
    ]
    return [bullets(lines)]


def _told(text: str, holds: bool) -> Html:
    """A sentence with its outcome."""
    return tag("span", f"{text} ", _outcome(holds))


def _speed(report: dict[str, Any]) -> list[Html]:
    by_model: dict[str, dict[str, Any]] = {}
    for one in report["speeds"]:
        column = "cpu" if one["device"] == "cpu" else "repeatable" if one["repeatable"] else "free"
        by_model.setdefault(one["model"], {})[column] = one
    if not by_model:
        return [quiet("left out")]
    body = []
    for model, columns in by_model.items():
        rates = {name: one["triples_per_second"] for name, one in columns.items()}
        times = f"{rates['repeatable'] / rates['cpu']:.1f} times" if "repeatable" in rates else _NONE
        cost = f"{rates['free'] / rates['repeatable'] - 1:.0%}" if "free" in rates else _NONE
        peak = columns.get("repeatable", {}).get("peak_megabytes")
        body.append([model, f"{rates['cpu']:,.0f}", _rate(rates, "repeatable"), times, _rate(rates, "free"), cost,
                     f"{peak:,.0f}" if peak is not None else _NONE])  # fmt: skip
    head = ("model", "one CPU core", "GPU", "GPU / core", "GPU, any order", "cost of repeatable sums", "GPU MB")
    told = "Triples per second; 14,541 entities, dimension 128, 256 negatives. The CPU by processor seconds."
    return [quiet(told), table(head, body)]


def _rate(rates: dict[str, float], column: str) -> str:
    return f"{rates[column]:,.0f}" if column in rates else _NONE

"""From the turns and summaries of interleaved runs to the figures of the overhead benchmark."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.baton import WARM_UP, Job, Turn
from benchmarks.estimates import median_with_interval
from secure_kg.runs.records.client_result import ClientLine
from secure_kg.runs.records.summary import PeakMemory, Summary
from secure_kg.runs.stopwatch import PHASES

PLAIN: Final = "plain"
_TRAFFIC: Final = ("bytes_up", "bytes_down", "messages_up", "messages_down")


def rounds_of(turns: Sequence[Turn]) -> dict[int, Turn]:
    """The rounds that are like all later ones."""
    return {turn.round: turn for turn in turns if turn.work == "round" and turn.round > WARM_UP}


def counted_rounds(turns: Sequence[Turn], with_dropouts: bool) -> dict[int, Turn]:
    """Those that the round figures are of: with dropouts, the ones in which a client was lost and the sum was made."""
    rounds = rounds_of(turns)
    if not with_dropouts:
        return rounds
    return {number: turn for number, turn in rounds.items() if turn.dropouts and not turn.abandoned}


def setting_figures(job: Job, plain: Job) -> dict[str, Any]:
    """One setting next to the plain one, round by round. Figures of a round are None if no round counts.

    `bytes_up` and `bytes_down` are of one round and all clients together, `run_...` of the whole run.
    """
    summary = job.summary()
    counted = counted_rounds(job.turns, job.silence is not None)
    twins = rounds_of(plain.turns)
    pairs = [(turn, twins[number]) for number, turn in sorted(counted.items()) if number in twins]
    turns = [turn for turn, _ in pairs]
    bytes_up, plain_bytes_up = _bytes(turns, "bytes_up"), _bytes(list(twins.values()), "bytes_up")
    by_work = {turn.work: turn for turn in job.turns}
    return {
        "rounds_counted": len(pairs),
        "round_seconds": _median(turn.working_seconds for turn, _ in pairs),
        **_ratios("ratio", [turn.working_seconds / twin.working_seconds for turn, twin in pairs]),
        # Whoever waits in vain looks for messages meanwhile, and that is no work.
        **_ratios("cpu_ratio", [_cpu(turn) / _cpu(twin) for turn, twin in pairs if not turn.dropouts]),
        "bytes_up": bytes_up,
        "bytes_down": _bytes(turns, "bytes_down"),
        "bytes_ratio": bytes_up / plain_bytes_up if bytes_up is not None and plain_bytes_up else None,
        "client_bytes_ratio": _median(_most_up(turn) / _most_up(twin) for turn, twin in pairs),
        "run_bytes_up": summary.bytes_up,
        "run_bytes_down": summary.bytes_down,
        "setup_seconds": by_work["set-up"].seconds,
        "setup_bytes_up": int(by_work["set-up"].total("bytes_up")),
        "setup_bytes_down": int(by_work["set-up"].total("bytes_down")),
        "waited_in_vain_seconds": sum(turn.seconds_in_vain for turn in job.turns),
        "dropouts": [dropout.to_json() for dropout in summary.dropouts],
        "abandoned_sums": [one.to_json() for one in summary.abandoned_sums],
        "mrr": summary.figures["mrr"],
        "seconds": summary.seconds,
        "cpu_seconds": summary.cpu_seconds,
        "round_traffic": _round_traffic(turns),
        "parties": _parties(job, summary, list(rounds_of(job.turns).values())),
        "rounds": [_round_record(turn) for turn in job.turns if turn.work == "round"],
    }


def ratios_to_plain(parties: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Each figure of each party over plain's; None where plain has none."""
    return {party: _over(figures, plain[party]) for party, figures in parties.items()}


def _over(figures: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    ratios: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            ratios[name] = _over(value, plain[name])
        else:
            ratios[name] = value / plain[name] if value is not None and plain[name] else None
    return ratios


def _ratios(name: str, values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {f"{name}_to_plain": None, f"{name}_interval": None, f"{name}_coverage": None, f"{name}s": []}
    found = median_with_interval(values)
    return {
        f"{name}_to_plain": found.value,
        f"{name}_interval": [found.low, found.high],
        f"{name}_coverage": found.coverage,
        f"{name}s": list(values),
    }


def _median(values: Any) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def _bytes(turns: Sequence[Turn], kind: str) -> int | None:
    """Of all clients together in one round: the median, and of two middle rounds the smaller."""
    return statistics.median_low(int(turn.total(kind)) for turn in turns) if turns else None


def _cpu(turn: Turn) -> float:
    """Of all processes of the federation."""
    return turn.server_cpu_seconds + sum(turn.client_cpu_seconds.values())


def _most_up(turn: Turn) -> float:
    """Of one client that stayed: all of those send alike."""
    return max(turn.figures["bytes_up_per_client"].values())


def _round_traffic(turns: Sequence[Turn]) -> dict[str, dict[str, float]]:
    """Per phase, of all clients together in one round, the mean of those counted."""
    phases = sorted({phase for turn in turns for kind in _TRAFFIC for phase in turn.figures.get(kind, {})})
    return {
        phase: {
            kind: statistics.fmean(turn.figures.get(kind, {}).get(phase, 0.0) for turn in turns) for kind in _TRAFFIC
        }
        for phase in phases
    }


def _parties(job: Job, summary: Summary, rounds: Sequence[Turn]) -> dict[str, Any]:
    """Server, mean client and most burdened client. Phases of clients are over the whole run, with its two sums of
    metrics; `round_cpu_seconds`, the whole process, is of a training round.
    """
    clients, peak = summary.clients, summary.peak_memory_mb
    server = {
        "seconds": summary.seconds_server,
        "cpu_seconds": summary.cpu_seconds_server,
        "round_cpu_seconds": _median(turn.server_cpu_seconds for turn in rounds),
        "run_bytes_up": sum(client.bytes_up for client in clients),
        "run_bytes_down": sum(client.bytes_down for client in clients),
        "run_messages_up": sum(turn.total("messages_up") for turn in job.turns),
        "run_messages_down": sum(turn.total("messages_down") for turn in job.turns),
        "peak_memory_mb": peak.server if isinstance(peak, PeakMemory) else peak,
    }
    return {
        "server": server,
        "client_mean": _of_clients(clients, rounds, statistics.fmean),
        "client_max": _of_clients(clients, rounds, max),
    }


def _of_clients(
    clients: Sequence[ClientLine], rounds: Sequence[Turn], of: Callable[[Sequence[float]], float]
) -> dict[str, Any]:
    numbers = sorted({number for turn in rounds for number in turn.client_cpu_seconds})
    per_client = [statistics.median(turn.client_cpu_seconds.get(number, 0.0) for turn in rounds) for number in numbers]
    return {
        "seconds": {phase: of([client.seconds[phase] for client in clients]) for phase in PHASES},
        "cpu_seconds": {phase: of([(client.cpu_seconds or {})[phase] for client in clients]) for phase in PHASES},
        "round_cpu_seconds": of(per_client) if per_client else None,
        "run_bytes_up": of([client.bytes_up for client in clients]),
        "run_bytes_down": of([client.bytes_down for client in clients]),
        "run_messages_up": of([client.messages_sent for client in clients]),
        "run_messages_down": of([client.messages_received for client in clients]),
        "peak_memory_mb": of([client.peak_memory_mb or 0.0 for client in clients]),
    }


def _round_record(turn: Turn) -> dict[str, Any]:
    return {
        "round": turn.round,
        "seconds": turn.seconds,
        "waited_in_vain_seconds": turn.seconds_in_vain,
        "server_cpu_seconds": turn.server_cpu_seconds,
        "client_cpu_seconds": sum(turn.client_cpu_seconds.values()),
        "unmask_cpu_seconds": turn.figures.get("cpu_seconds", {}).get("unmask", 0.0),
        "bytes_up": turn.total("bytes_up"),
        "dropouts": turn.dropouts,
        "abandoned_sums": turn.abandoned,
    }

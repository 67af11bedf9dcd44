"""The same work by others, for comparison.

phe       one score to a Paillier ciphertext, as the package is commonly used
CrypTen   one comparison of all scores with as many others, and one argmax, as its users have them; ten argmaxes are a
          top-10
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.scoring.workload import ASKER, Workload
from protocols.scores.crypten.measure import function_costs
from protocols.scores.encrypted.optional import need

UNPACKED_BITS: Final = 2048
SAMPLE: Final = 40
"""So many scores are encrypted, added and decrypted; all of a query would take minutes."""
UNPACKED: Final = "phe_unpacked_2048"
COMPARISON: Final = "crypten_comparison"
ARGMAX: Final = "crypten_argmax"
EXTRAPOLATED: Final = f"extrapolated from {SAMPLE} scores per step"


def unpacked_phe(work: Workload, repeat: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Processor seconds of one query: every scorer encrypts all positions, the server adds, the asker decrypts."""
    phe = need("phe", "paillier")
    public, private = phe.generate_paillier_keypair(n_length=UNPACKED_BITS)
    numbers = np.random.default_rng(work.seed).integers(-(1 << 24), 1 << 24, SAMPLE).tolist()
    encrypt, add, decrypt = list[float](), list[float](), list[float]()
    for repetition in range(repeat):
        tell(f"{UNPACKED}: {repetition + 1} of {repeat}")
        with _per_score(encrypt):
            ciphertexts = [public.encrypt(number) for number in numbers]
        others = [public.encrypt(number) for number in numbers]
        with _per_score(add):
            sums = [one + other for one, other in zip(ciphertexts, others, strict=True)]
        with _per_score(decrypt):
            opened = [private.decrypt(one) for one in sums]
        if opened != [2 * number for number in numbers]:
            raise AssertionError("phe has added up wrongly")
    scorers = len([party for party in work.parties if party != ASKER])
    per_score = {"encrypt": encrypt, "add": add, "decrypt": decrypt}
    medians = {step: statistics.median(seconds) for step, seconds in per_score.items()}
    times = {"encrypt": scorers, "add": scorers - 1, "decrypt": 1}
    return {
        "bits": UNPACKED_BITS,
        "sample": SAMPLE,
        "note": EXTRAPOLATED,
        "cpu_seconds_per_score": medians,
        "cpu_seconds_per_query": work.entities * sum(times[step] * medians[step] for step in times),
    }


@contextmanager
def _per_score(into: list[float]) -> Iterator[None]:
    started = time.thread_time()
    yield
    into.append((time.thread_time() - started) / SAMPLE)


def over_unpacked(unpacked: dict[str, Any], packed: dict[str, Any], queries: int) -> dict[str, float]:
    """How many times the processor seconds of a backend unpacked ciphertexts take, by what counts as the backend's.

    `nothing_precomputed`: all of its first batch, in which it makes keys and tables. `tables_kept`: all of a later one.
    `computed_ahead`: a later one but for what was computed in the background.
    """
    theirs = unpacked["cpu_seconds_per_query"]
    later, ahead = packed["cpu_seconds_per_query"], packed["background_cpu_seconds_per_query"]
    return {
        "nothing_precomputed": theirs * queries / packed["first_batch"]["cpu_seconds"],
        "tables_kept": theirs / later,
        "computed_ahead": theirs / (later - ahead),
    }


def crypten_functions(work: Workload, repeat: int, tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Seconds by the clock on the wall, in a group of as many processes as there are clients.

    With tuples from a dealer, as in the backend `crypten`, and from the first rank, as CrypTen has it by default. What
    counts is the faster of the two.
    """
    tell(f"{COMPARISON}, {ARGMAX}")
    costs = {
        "dealer": function_costs(work.clients, work.entities, repeat),
        "first party": function_costs(work.clients, work.entities, repeat, first_party=True),
    }
    if not all(one.right for one in costs.values()):
        raise AssertionError("CrypTen has compared wrongly")
    comparisons = {provider: one.comparison_seconds for provider, one in costs.items()}
    argmaxes = {provider: one.argmax_seconds for provider, one in costs.items()}
    return {COMPARISON: _faster(comparisons, work), ARGMAX: _faster(argmaxes, work)}


def _faster(seconds: dict[str, float], work: Workload) -> dict[str, Any]:
    provider = min(seconds, key=lambda name: seconds[name])
    note = f"of {work.entities:,} scores, {work.clients} processes, tuples from the {provider}"
    return {"seconds": seconds[provider], "by_provider": seconds, "note": note}


def over_functions(measured: dict[str, Any], selection: dict[str, Any]) -> dict[str, float]:
    """How many times the seconds of one query of a backend CrypTen's functions take; both in processes."""
    seconds = selection["seconds_per_query"]
    return {name: measured[name]["seconds"] / seconds for name in (COMPARISON, ARGMAX)}

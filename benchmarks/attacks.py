"""Attacks on masks as they are made elsewhere, on ours, and on answers: `python -m benchmarks.attacks --help`.

differences   FedCQA's secret aggregation as published adds one perturbation in every round. The server subtracts two
              uploads of a client and has its update. The same attack on our secret sums, with the masks of a real
              session, gets noise.
weak seed     A mask from a Mersenne Twister whose seed is folded to a few bits, as Flower's (32 bits): the server tries
              all seeds on an upload in which it knows some entries to be zero, as those of rows a client does not hold.
              The same search on an upload under our AES-256-CTR masks finds nothing.

extraction    An asker of score queries solves for the trained rows. It succeeds on means that `plain` or `masked`
              opens, if clients keep no budget, and computes no row within the default budget, or from the positions
              that `topk` opens. An estimate from positions shows the direction of rows all the same, here where answers
              are a twentieth of a small table, and more of it with every query.

Attacks on a whole run (FedR's reconstruction, holdings, differences of sums) are part of an audit:
python -m launch.audit RUN --truth RUN/clients --out DIR. Exit code 0: every attack ended as expected. 1: one did not.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from launch.command_line import OneLineParser, require_writable, run_command
from protocols.sums.interface import Contribution, SumLayout
from secure_kg.attacks.extraction_attempts import from_best_positions, from_opened_means, within_budget
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.secret_uploads import secret_uploads
from secure_kg.attacks.static_perturbation import attack_published, attack_secret_aggregation
from secure_kg.attacks.weak_seed import Uploaded, find_seed, seed_search_result, weak_mask
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_json

_ENTRIES: Final = 400
_RING_BITS: Final = 32


def main(argv: Sequence[str] | None = None) -> int:
    """0: as expected. 1: not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.attacks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.attacks --bits 24 --json attacks.json",
        allow_abbrev=False,
    )
    parser.add_argument("--bits", type=int, default=28, metavar="B", help="bits of the weak seed, up to 32 [28]")
    parser.add_argument("--seed", type=int, default=0, help="of the simulated training [0]")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if not 8 <= options.bits <= 32:
        raise UserError("--bits must lie between 8 and 32")
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    quiet = options.json == "-"
    if not quiet:
        say(f"trying up to 2^{options.bits} seeds, twice")
    attacks = [
        (attack_published(options.seed), True),
        (attack_secret_aggregation(options.seed), False),
        (_weak_mask_attack(options.bits), True),
        (_our_mask_attack(options.bits), False),
        *_extraction(options.seed),
    ]
    report: dict[str, Any] = {
        "bits": options.bits,
        "attacks": [{**result.to_json(), "expected": expected} for result, expected in attacks],
        "as_expected": all(result.succeeded == expected for result, expected in attacks),
    }
    if quiet:
        say(json.dumps(report, indent=2))
    else:
        _show(attacks)
        if options.json:
            write_json(Path(options.json), report)
    return 0 if report["as_expected"] else 1


def _extraction(seed: int) -> list[tuple[AttackResult, bool]]:
    """On answers of real batches."""
    exact, estimate = from_best_positions(seed=seed)
    return [
        (from_opened_means("plain", seed=seed), True),
        (from_opened_means("masked", seed=seed), True),
        (within_budget("masked", seed=seed), False),
        (exact, False),
        (estimate, True),
    ]


def _input() -> tuple[Uploaded, npt.NDArray[np.int64]]:
    """A client's vector in fixed point: every other row of ten is not its own, so its entries are zero."""
    layout = _layout()
    values = np.random.default_rng(0).normal(size=_ENTRIES)
    zeros = np.flatnonzero((np.arange(_ENTRIES) // 10) % 2 == 1)
    values[zeros] = 0.0
    vector = layout.encode(Contribution(values, np.zeros(0, dtype=np.int64))).vector
    return vector.astype(np.uint64), zeros


def _layout() -> SumLayout:
    return SumLayout(_ENTRIES, 0, bound=16.0, max_count=1, parties=2, ring_bits=32)


def _weak_mask_attack(bits: int) -> AttackResult:
    vector, zeros = _input()
    mask = weak_mask(secrets.randbelow(1 << bits), _ENTRIES, _RING_BITS)
    upload: Uploaded = (vector + mask) % np.uint64(1 << _RING_BITS)
    search = find_seed(upload, zeros, _RING_BITS, bits)
    return seed_search_result(search, upload, vector, _RING_BITS, 1, bits)


def _our_mask_attack(bits: int) -> AttackResult:
    vector, zeros = _input()
    (masked,) = secret_uploads([vector.astype(np.uint32)], _layout())
    upload = masked.astype(np.uint64)
    search = find_seed(upload, zeros, _RING_BITS, bits)
    return seed_search_result(search, upload, vector, _RING_BITS, 1, bits)


def _show(attacks: Sequence[tuple[AttackResult, bool]]) -> None:
    masks = ("FedCQA as published", "our secret sums", "mask from a folded seed", "our masks")
    names = (*masks, "plain means", "means, no budget", "means, budget", "positions", "positions, estimate")
    rows = [
        [
            name,
            result.title,
            "succeeded" if result.succeeded else "failed",
            "succeeded" if expected else "failed",
            ", ".join(f"{key} {value:.4f}" for key, value in result.scores.items()),
            ", ".join(f"{value:.4f}" for value in result.chance.values()),
        ]
        for name, (result, expected) in zip(names, attacks, strict=True)
    ]
    table("Attacks on masks and scores", ("", "attack", "it", "expected", "score", "by guessing"), rows)
    for name, (result, _) in zip(names, attacks, strict=True):
        say(f"{name}: {result.explanation}")


if __name__ == "__main__":
    sys.exit(main())

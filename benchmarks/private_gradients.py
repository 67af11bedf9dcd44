"""Per-triple gradients, clipped and summed, per processor second: `python -m benchmarks.private_gradients --help`.

Made-up triples against one set of shared negatives, one thread. Beside each model stands the same sum by autograd, one
triple at a time, over a few triples: what the closed forms save.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.foundation.console import table
from secure_kg.foundation.errors import UserError
from secure_kg.models.shapes import MODELS

if TYPE_CHECKING:
    from torch import Tensor

    from secure_kg.models.base import EmbeddingModel

_BY_AUTOGRAD = 20  # triples


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.private_gradients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.private_gradients --models transe distmult --json gradients.json",
        allow_abbrev=False,
    )
    names = [name.lower() for name in MODELS]
    parser.add_argument("--models", nargs="+", default=["transe", "distmult"], choices=names, help="[transe distmult]")
    parser.add_argument("--entities", type=int, default=14_541, metavar="N", help="[14541, as FB15k-237]")
    parser.add_argument("--relations", type=int, default=237, metavar="N", help="[237]")
    parser.add_argument("--dim", type=int, default=128, metavar="D", help="[128]")
    parser.add_argument("--negatives", type=int, default=256, metavar="K", help="shared by all triples [256]")
    parser.add_argument("--triples", type=int, default=20_480, metavar="B", help="of one sum [20480]")
    parser.add_argument("--repeats", type=int, default=5, metavar="R", help="timed sums; the median counts [5]")
    parser.add_argument("--seed", type=int, default=0, help="of rows, triples and negatives [0]")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write the figures to FILE; - for output")
    return parser


def _run(options: argparse.Namespace) -> int:
    sizes = ("entities", "relations", "dim", "negatives", "triples", "repeats")
    if min(getattr(options, name) for name in sizes) < 1 or options.seed < 0:
        raise UserError(f"--{', --'.join(sizes)} must be at least 1, --seed at least 0")
    if options.negatives > options.entities:
        raise UserError("--negatives: there are not so many entities")
    require_json(options.json)
    report: dict[str, Any] = {name: getattr(options, name) for name in (*sizes, "seed")}
    names = {name.lower(): name for name in MODELS}
    report["models"] = [_measured(names[name], options) for name in options.models]
    deliver(report, options.json, _show)
    return 0


def _measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from secure_kg.foundation.seeds import torch_seed
    from secure_kg.models.base import ModelSize
    from secure_kg.models.registry import build_model
    from secure_kg.privacy.gradients.clipped_sums import PrivateGradients

    torch.set_num_threads(1)
    random = torch.Generator().manual_seed(torch_seed(options.seed, "private gradients", name))
    model = build_model(name, ModelSize(options.entities, options.relations, options.dim, 10.0, 2), random)
    ends = torch.randint(0, options.entities, (options.triples, 2), generator=random)
    relation = torch.randint(0, options.relations, (options.triples,), generator=random)
    triples = torch.stack((ends[:, 0], relation, ends[:, 1]), dim=1)
    negatives = torch.randperm(options.entities, generator=random)[: options.negatives]
    gradients = PrivateGradients(model)
    gradients.sums(triples[:1024], negatives, 1.0)  # a warm-up
    clipped = gradients.sums(triples, negatives, 1.0).clipped
    seconds = [_seconds(lambda: gradients.sums(triples, negatives, 1.0)) for _ in range(options.repeats)]
    some = triples[:_BY_AUTOGRAD]
    _by_autograd(model, some[:1], negatives)
    slow = _seconds(lambda: _by_autograd(model, some, negatives))
    return {
        "model": name,
        "triples_per_cpu_s": options.triples / statistics.median(seconds),
        "by_autograd_triples_per_cpu_s": len(some) / slow,
        "clipped": clipped / options.triples,
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-9)


def _by_autograd(model: "EmbeddingModel", triples: "Tensor", negatives: "Tensor") -> None:
    """The same sums, one triple after the other, over the rows that it touches."""
    import torch

    from secure_kg.learning.loss import self_adversarial_loss

    sums = [torch.zeros_like(parameter) for parameter in (model.entity, model.relation)]
    for h, r, t in triples:
        ids = torch.cat((h[None], t[None], negatives))
        rows = model.entity.detach()[ids].requires_grad_()
        relation = model.relation.detach()[r][None].requires_grad_()
        full = model.relation_rows(r[None], relation)
        own = (negatives == h) | (negatives == t)
        scores = model.score(rows[:1], full, rows[1:2]), model.score_tails(rows[:1], full, rows[2:])
        found = torch.autograd.grad(self_adversarial_loss(*scores, own[None], 1.0), (rows, relation))
        scale = min(1.0, 1.0 / float(torch.cat([part.reshape(-1) for part in found]).norm()))
        sums[0].index_add_(0, ids, scale * found[0])
        sums[1].index_add_(0, r[None], scale * found[1])


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            one["model"],
            round(one["triples_per_cpu_s"]),
            round(one["by_autograd_triples_per_cpu_s"]),
            f"{one['clipped']:.0%}",
        ]
        for one in report["models"]
    ]
    title = f"dimension {report['dim']}, {report['negatives']} shared negatives, {report['entities']:,} entities"
    table(title, ("model", "triples per CPU second", "by autograd, one by one", "clipped"), rows)


if __name__ == "__main__":
    sys.exit(main())

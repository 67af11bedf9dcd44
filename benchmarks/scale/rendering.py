"""docs/scale.md and its figure, from the figures of `benchmarks.scale`."""

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.scale.chart import Line, chart
from benchmarks.scale.measuring import HOLDERS, MODEL, Size
from benchmarks.scale.model import Fit
from benchmarks.scale.paper import DIM, LINK, ROWS, on_paper, server_megabytes, server_seconds, table_entries
from protocols.sums.secagg.params import complete_parameters, sparse_parameters

_DRAWN: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
_GRAPHS: Final = (("complete graph", complete_parameters), ("sparse graph", sparse_parameters))
_NAMES: Final = {
    "client_seconds": "seconds of a client",
    "server_seconds": "seconds of the server",
    "process_megabytes": "memory of all parties",
}


def figure(report: dict[str, Any], fits: Sequence[Fit]) -> str:
    """Seconds of one sum of rows by the model, and points that the model was not fitted to, at the same size."""
    lines = []
    for quantity in ("client_seconds", "server_seconds"):
        (fit,) = (one for one in fits if (one.kind, one.quantity) == ("sum", quantity))
        for graph, make in _GRAPHS:
            degrees = {clients: make(clients, MODEL).degree for clients in _DRAWN}
            points = [(float(n), fit.predict(Size("sum", n, ROWS, DIM), degree)) for n, degree in degrees.items()]
            who = _NAMES[quantity].removeprefix("seconds of ")
            lines.append(Line(f"{who}, {graph}", points, dashed=graph == "sparse graph"))
    link = [(float(n), on_paper(fits, n).link_seconds) for n in _DRAWN]
    lines.append(Line("the server's link at 1 Gbit/s", link))
    return chart(f"One sum of {ROWS:,} rows of {DIM} numbers: processor seconds by the model", lines)


def markdown(report: dict[str, Any], fits: Sequence[Fit]) -> str:
    """The whole document."""
    parts = [_beginning(report), *_measured(report), *_model(fits), *_paper(report, fits), _limits(report, fits)]
    return "\n".join(parts)


def _beginning(report: dict[str, Any]) -> str:
    return f"""# How costs grow

Made by `python -m benchmarks.scale --markdown docs/scale.md --figure docs/figures/scale.svg` (commit
{report["commit"] or "unknown"}). All parties run in one process, with real messages; seconds are of the processor, on
{report["machine"]}, with other work beside it. A *sum* is one masked sum of rows × dimension entries of 32 bits. A
*union* aligns so many names. A *secret round* counts holders (`--min-holders {HOLDERS}`) and adds rows under secret
sums; of its server only the unmasking is counted.
"""


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _measured(report: dict[str, Any]) -> list[str]:
    lines = ["## Measured", "", "Figures of a client are the mean; of the server for all clients.", ""]
    lines += [_row("what", "clients", "dropped", "rows", "dim", "neighbours", "client s", "server s", "client bytes up",
                   "all parties MB"), "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for point in (*report["fitted"], *report["held_out"]):
        size = point["size"]
        memory = f"{point['process_megabytes']:.1f}" if point["process_megabytes"] else "–"
        what = f"{size['kind']}{', sparse' if size['sparse'] else ''}"
        lines.append(_row(what, size["clients"], size["dropped"], f"{size['rows']:,}", size["dim"], point["neighbours"],
                          f"{point['client_seconds']:.4f}", f"{point['server_seconds']:.4f}",
                          f"{point['client_bytes_up']:,}", memory))  # fmt: skip
    return [*lines, ""]


def _model(fits: Sequence[Fit]) -> list[str]:
    lines = [
        "## The model",
        "",
        "Costs are sums of what a party does: once, for each neighbour or client, for each entry, for each entry of a",
        "keystream (`benchmarks/scale/model.py`). The constants come from the points of up to 16 clients above; the",
        "errors are those on points that it has not seen: 12 to 300 clients, sparse graphs among them, none fitted.",
        "",
        _row("what", "quantity", "usual error", "largest error"),
        "|---|---|---|---|",
        *(_row(one.kind, _NAMES[one.quantity], f"{one.usual_error:.0%}", f"{one.largest_error:.0%}") for one in fits),
        "",
    ]
    return lines


def _paper(report: dict[str, Any], fits: Sequence[Fit]) -> list[str]:
    lines = [
        "## A thousand clients, on paper",
        "",
        f"{ROWS:,} rows of {DIM} numbers, as FB15k-237's entities have. Bytes are of one client up, in closed form,",
        "held by tests to what really travels; everybody masks with everybody there. A count of holders, a union of",
        f"{ROWS:,} names ({table_entries():,} entries) and one question over scores stand beside the rows. Seconds are",
        "the model's, for sums of rows without dropouts, in both graphs.",
        "",
        "![Seconds of one sum against clients](figures/scale.svg)",
        "",
        _row("clients", "rows", "count of holders, usual", "count, --min-holders 2", "union", "one question",
             "client s", "client s, sparse", "server s", "server s, sparse", "link s"),
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for one in report["paper"]:
        question = _megabytes(one["question_up"]) if one["question_up"] is not None else "–"
        lines.append(_row(f"{one['clients']:,}", *(_megabytes(one[name]) for name in
                          ("rows_up", "count_up", "count_of_two_up", "union_up")), question,
                          *(f"{one[name]:.2f}" for name in ("client_seconds", "client_seconds_sparse", "server_seconds",
                                                            "server_seconds_sparse", "link_seconds"))))  # fmt: skip
    return [*lines, ""]


def _limits(report: dict[str, Any], fits: Sequence[Fit]) -> str:
    most = report["paper"][-1]
    clients = most["clients"]
    sparse = sparse_parameters(clients, MODEL).degree
    memory = server_megabytes(fits, clients, sparse)
    dropouts = server_seconds(fits, clients, sparse, clients // 10)
    return f"""## Where it ends

- **The server's link.** At 1 Gbit/s it takes {most["link_seconds"]:.0f} s for the rows of {clients:,} clients
  ({LINK / 1e6:.0f} MB/s), in every round. Narrow rings halve it ([overhead.md](overhead.md#narrow-rings)).
- **The count of holders** has (m − 1)² entries per row, where m is how many holders a row must have: two more than
  clients may be corrupt, a quarter of them by default. For {clients:,} clients that is
  {most["count_up"] / 1e9:,.0f} GB up per client and count, which nobody can send: with so many clients say
  `--min-holders`, and what it means stands in [who-holds-what.md](who-holds-what.md).
- **A client's masks.** Where everybody masks with everybody, a client's seconds grow with the number of clients. In the
  sparse graph (a server that follows the protocol) they stay at {sparse} neighbours for {clients:,} clients.
- **Dropouts** cost the server a key agreement and a keystream for each neighbour of each client that is missing: with
  a tenth missing, {dropouts:.0f} s for {clients:,} clients in the sparse graph. The table has none.
- **Memory.** The server keeps one vector, and keys and shares of all clients: {memory:,.0f} MB for everybody of a
  simulated sum of {clients:,} clients in the sparse graph, by the model.
- **Questions over scores** have 12 clients at most.
- **One host or several.** Parties of one job compete for the cores of a host: with as many ranks as cores, training
  decides, not the sums. Beyond that MPI over several hosts ([guides/deploy.md](guides/deploy.md)) adds cores and links
  of clients; the server stays one process at one link, and its limits are those above.

Not measured here: more than one host, links, and a run of more than 20 real ranks.
"""


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.2f} MB" if size < 1e9 else f"{size / 1e9:,.0f} GB"

"""Registry of lookups: what a session of score queries has beside them. Batches in which nothing is ranked."""

import dataclasses
from typing import Final, NoReturn

from protocols.bundles import AskerReads, Registry, ScoreBackend
from protocols.exact.client import OPTION
from protocols.exact.disclosure import EXACT_ANSWERS
from protocols.exact.server import ExactServer, ExactServerAgain
from protocols.lookups.disclosure import NAME_LOOKUPS, VECTOR_LOOKUPS
from protocols.lookups.names import NamesServer, sum_terms
from protocols.registry import SCORES
from protocols.sums.secagg.keys import ClientKeys, ServerKeys

LOOKUPS: Final = Registry[ScoreBackend]("lookup")
NAMES: Final = "names"
VECTORS: Final = "vectors"
EXACT: Final = "exact"


def batch_kind(name: str) -> ScoreBackend:
    """A lookup or a score backend; whatever a recorded batch may be."""
    return LOOKUPS[name] if name in LOOKUPS else SCORES[name]


def _not_ranked(keys: ClientKeys | None, budget: object = None) -> NoReturn:
    raise TypeError("lookups are asked and answered by protocols.lookups and protocols.exact")


def _names_server(keys: ServerKeys | None) -> NamesServer:
    if keys is None:
        raise ValueError("this protocol needs keys between clients, and there are none")
    return NamesServer(keys.vectors)


LOOKUPS.register(
    dataclasses.replace(
        SCORES["masked"],
        name=VECTORS,
        client=_not_ranked,
        default_least=1,
        disclosure=VECTOR_LOOKUPS,
        unlimited=None,
    )
)
LOOKUPS.register(
    dataclasses.replace(
        LOOKUPS[VECTORS],
        name=NAMES,
        server=_names_server,
        server_again=lambda keys, recorded: _names_server(keys),
        asker_reads=AskerReads.NAMES,
        masked_terms=sum_terms,
        disclosure=NAME_LOOKUPS,
    )
)
LOOKUPS.register(
    dataclasses.replace(
        SCORES["topk"],
        name=EXACT,
        client=_not_ranked,
        server=lambda keys: ExactServer(),
        server_again=lambda keys, recorded: ExactServerAgain(recorded),
        asker_reads=AskerReads.STORED,
        disclosure=EXACT_ANSWERS,
        option=OPTION,
    )
)

"""Registry: the one place where a name in the configuration becomes a protocol.

To add a sum or an alignment: write its two classes and its disclosure, and register a bundle of them. Choices on the
command line, documents, reports and audits follow.
"""

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from protocols.alignment import plain as plain_union
from protocols.alignment.interface import Positions, Union
from protocols.alignment.plain import PLAIN_UNION
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import union as private_union
from protocols.alignment.psu.attempts import UnionPlaces, UnionTerms
from protocols.alignment.psu.disclosure import PRIVATE_UNION, UNION_NAMES
from protocols.bundles import (
    Aggregation,
    Alignment,
    AlignmentTerms,
    AskerReads,
    HolderCount,
    Registry,
    SaidNext,
    ScoreBackend,
    ServerReads,
)
from protocols.foundation.disclosure import Disclosure
from protocols.holders import secret as secret_count
from protocols.holders.disclosure import PLAIN_COUNT, SECRET_COUNT
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.primitives.group import Ring
from protocols.primitives.residues import Residues
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.disclosure import CRYPTEN_SCORES
from protocols.scores.crypten.server import CryptenScoreServer
from protocols.scores.disclosure import MASKED_SCORES, PLAIN_SCORES, UNLIMITED_MEANS
from protocols.scores.encrypted import bfv, paillier
from protocols.scores.encrypted import sums as encrypted_sums
from protocols.scores.encrypted.again import SchemeAgain
from protocols.scores.encrypted.disclosure import BFV_SCORES, PAILLIER_SCORES
from protocols.scores.encrypted.scheme import Scheme
from protocols.scores.encrypted.sums import EncryptedScoreClient, EncryptedScoreServer
from protocols.scores.masked import MaskedScoreClient, MaskedScoreServer
from protocols.scores.masked import sum_terms as masked_sum_terms
from protocols.scores.plain import PlainScoreClient, PlainScoreServer
from protocols.scores.standing import require_semi_honest
from protocols.scores.terms import RING
from protocols.scores.topk.client import TopKClient
from protocols.scores.topk.disclosure import TOP_K
from protocols.scores.topk.server import TopKServer, TopKServerAgain
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.plain import PLAIN_SUMS, PlainSumClient, PlainSumServer
from protocols.sums.secagg.disclosure import MASKED_SUMS
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer, secret_terms
from protocols.sums.secret.check import checks_of, possible_entries
from protocols.sums.secret.disclosure import SECRET_SUMS

K = TypeVar("K", ClientKeys, ServerKeys)

AGGREGATIONS: Final = Registry[Aggregation]("aggregation")
ALIGNMENTS: Final = Registry[Alignment]("alignment")
SCORES: Final = Registry[ScoreBackend]("score backend")


def _needed(keys: K | None) -> K:
    """A protocol that needs keys never runs without: there is no falling back to one that does without."""
    if keys is None:
        raise ValueError("this protocol needs keys between clients, and there are none")
    return keys


def _secret_sum_client(keys: ClientKeys | None) -> SecretSumClient:
    return SecretSumClient(_needed(keys).vectors, _needed(keys).key)


def _secret_holder_client(keys: ClientKeys | None) -> secret_count.SecretHolderClient:
    return secret_count.SecretHolderClient(_needed(keys).vectors, _needed(keys).key)


SECRETLY_COUNTED: Final = HolderCount(
    client=_secret_holder_client,
    server=lambda keys, least: secret_count.SecretHolderServer(_needed(keys).vectors),
    masked_terms=secret_count.count_terms,
    disclosure=SECRET_COUNT,
)
PLAINLY_COUNTED: Final = HolderCount(
    client=lambda keys: PlainHolderClient(),
    server=lambda keys, least: PlainHolderServer(least),
    masked_terms=None,
    disclosure=PLAIN_COUNT,
)

AGGREGATIONS.register(
    Aggregation(
        name="secagg",
        client=lambda keys: SecAggSumClient(_needed(keys).vectors),
        server=lambda keys, least: SecAggSumServer(_needed(keys).vectors),
        count=SECRETLY_COUNTED,
        server_reads=ServerReads.TOTALS,
        needs_keys=True,
        stands_against_active=True,
        disclosure=MASKED_SUMS,
    )
)
AGGREGATIONS.register(
    Aggregation(
        name="secret",
        client=_secret_sum_client,
        server=lambda keys, least: SecretSumServer(_needed(keys).vectors),
        count=SECRETLY_COUNTED,
        server_reads=ServerReads.NOTHING,
        needs_keys=True,
        stands_against_active=True,
        masked_terms=secret_terms,
        extra_entries=checks_of,
        possible_entries=possible_entries,
        disclosure=SECRET_SUMS,
    )
)
AGGREGATIONS.register(
    Aggregation(
        name="plain",
        client=lambda keys: PlainSumClient(),
        server=lambda keys, least: PlainSumServer(least),
        count=PLAINLY_COUNTED,
        server_reads=ServerReads.CONTRIBUTIONS,
        needs_keys=False,
        stands_against_active=False,
        disclosure=PLAIN_SUMS,
    )
)


def _join_privately(
    session: ClientSession,
    keys: ClientKeys | None,
    terms: AlignmentTerms,
    names: Collection[str],
    state: bytes,
) -> Positions:
    objection = union_names.objection(names) if terms.reveal_names else ""
    return private_union.join(session, _needed(keys), UnionTerms(terms.clients, terms.bound), names, objection, state)


def _serve_privately(session: ServerSession, keys: ServerKeys | None, terms: AlignmentTerms) -> Union:
    return private_union.serve(session, _needed(keys), UnionTerms(terms.clients, terms.bound))


def _serve_privately_again(
    session: ServerSession, keys: ServerKeys | None, terms: AlignmentTerms, said: SaidNext
) -> Union:
    return private_union.serve(
        session,
        _needed(keys),
        UnionTerms(terms.clients, terms.bound),
        lambda total, attempt: private_union.answer_again(total, attempt, said(UnionPlaces)),
    )


ALIGNMENTS.register(
    Alignment(
        name="psu",
        join=_join_privately,
        serve=_serve_privately,
        serve_again=_serve_privately_again,
        server_reads_names=False,
        needs_keys=True,
        disclosure=PRIVATE_UNION,
        revealing=UNION_NAMES,
    )
)
ALIGNMENTS.register(
    Alignment(
        name="plain",
        join=lambda session, keys, terms, names, state: plain_union.join(session, names),
        serve=lambda session, keys, terms: plain_union.serve(session),
        server_reads_names=True,
        needs_keys=False,
        disclosure=PLAIN_UNION,
    )
)


def _semi_honest(keys: ClientKeys | None, name: str) -> ClientKeys:
    """The same, for a backend that need not be registered under its name: one with other keys, to be measured."""
    held = _needed(keys)
    require_semi_honest(held.vectors.model, name)
    return held


def _standing(keys: ClientKeys | None, name: str) -> ClientKeys:
    """Keys of a client whose declaration the backend stands against: no caller can forget to ask."""
    held = _needed(keys)
    SCORES[name].require_standing(held.vectors.model)
    return held


SCORES.register(
    ScoreBackend(
        name="masked",
        client=lambda keys, budget=None: MaskedScoreClient(
            _standing(keys, "masked").vectors, _secret_holder_client(keys), budget
        ),
        server=lambda keys: MaskedScoreServer(
            _needed(keys).vectors, secret_count.SecretHolderServer(_needed(keys).vectors)
        ),
        server_again=lambda keys, recorded: MaskedScoreServer(
            _needed(keys).vectors, secret_count.SecretHolderServer(_needed(keys).vectors)
        ),
        asker_reads=AskerReads.MEANS,
        server_reads_scores=False,
        reads_all_with_a_client=False,
        needs_keys=True,
        stands_against_active=True,
        default_least=2,
        masked_terms=masked_sum_terms,
        disclosure=MASKED_SCORES,
        unlimited=UNLIMITED_MEANS,
    )
)
SCORES.register(
    ScoreBackend(
        name="plain",
        client=lambda keys, budget=None: PlainScoreClient(budget),
        server=lambda keys: PlainScoreServer(),
        server_again=lambda keys, recorded: PlainScoreServer(),
        asker_reads=AskerReads.MEANS,
        server_reads_scores=True,
        reads_all_with_a_client=True,
        needs_keys=False,
        stands_against_active=False,
        default_least=2,
        disclosure=PLAIN_SCORES,
        unlimited=UNLIMITED_MEANS,
    )
)
SCORES.register(
    ScoreBackend(
        name="topk",
        client=lambda keys, budget=None: TopKClient(
            _standing(keys, "topk").vectors, _secret_holder_client(keys), budget and budget.covering
        ),
        server=lambda keys: TopKServer(secret_count.SecretHolderServer(_needed(keys).vectors)),
        server_again=lambda keys, recorded: TopKServerAgain(
            secret_count.SecretHolderServer(_needed(keys).vectors), recorded
        ),
        asker_reads=AskerReads.POSITIONS,
        server_reads_scores=False,
        reads_all_with_a_client=True,
        needs_keys=True,
        stands_against_active=False,
        default_least=1,
        disclosure=TOP_K,
    )
)


def encrypted_scores(
    name: str,
    scheme: Callable[[], Scheme],
    packages: tuple[str, ...],
    disclosure: Disclosure,
    group: Ring | Residues = RING,
) -> ScoreBackend:
    """Scores under a key of the asker. `scheme` is called for every party: it imports what the cipher needs.

    `group`: that of the scheme, for whoever looks at a batch without the cipher.
    """
    return ScoreBackend(
        name=name,
        client=lambda keys, budget=None: EncryptedScoreClient(
            scheme(), _semi_honest(keys, name).vectors, _secret_holder_client(keys), budget
        ),
        server=lambda keys: EncryptedScoreServer(
            scheme(), _needed(keys).vectors, secret_count.SecretHolderServer(_needed(keys).vectors)
        ),
        server_again=lambda keys, recorded: EncryptedScoreServer(
            SchemeAgain(scheme(), recorded),
            _needed(keys).vectors,
            secret_count.SecretHolderServer(_needed(keys).vectors),
        ),
        asker_reads=AskerReads.MEANS,
        server_reads_scores=False,
        reads_all_with_a_client=False,
        needs_keys=True,
        stands_against_active=False,
        default_least=2,
        packages=packages,
        masked_terms=lambda terms: encrypted_sums.sum_terms(terms, group),
        disclosure=disclosure,
        unlimited=UNLIMITED_MEANS,
    )


SCORES.register(encrypted_scores("paillier", paillier.PaillierScheme, paillier.PACKAGES, PAILLIER_SCORES))
SCORES.register(encrypted_scores("bfv", bfv.BfvScheme, bfv.PACKAGES, BFV_SCORES, bfv.GROUP))
SCORES.register(
    ScoreBackend(
        name="crypten",
        client=lambda keys, budget=None: CryptenScoreClient(
            _standing(keys, "crypten").vectors.session, _secret_holder_client(keys)
        ),
        server=lambda keys: CryptenScoreServer(secret_count.SecretHolderServer(_needed(keys).vectors)),
        asker_reads=AskerReads.POSITIONS,
        server_reads_scores=False,
        reads_all_with_a_client=True,
        needs_keys=True,
        stands_against_active=False,
        default_least=1,
        packages=("crypten",),
        own_process=True,
        disclosure=CRYPTEN_SCORES,
    )
)

"""What the ciphers of encrypted scores cost, step by step, without network and without masks.

`paillier_cost` and `bfv_cost` are one batch each: every scorer encrypts, the server adds up and corrects, the asker
decrypts. Vectors are uniform, as masked ones are, and the sum is compared with what it must be. `unpacked_phe` is what
phe costs as it comes, with one score per ciphertext, measured on a few and multiplied.

Seconds are those of the processor, of the thread that does the work and of the one behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import numpy as np

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector
from protocols.scores.encrypted.bfv import BfvScheme
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.optional import need
from protocols.scores.encrypted.paillier import EXTRA, PaillierScheme
from protocols.scores.encrypted.paillier_keys import KeySize
from protocols.scores.encrypted.scheme import Encryptor, Scheme
from protocols.scores.terms import ScoreTerms

T = TypeVar("T")

KEY: Final = "key"
AHEAD: Final = "ahead"
ENCRYPT: Final = "encrypt"
ADD: Final = "add"
AHEAD_OF_SERVER: Final = "ahead, server"
CLOSE: Final = "close"
DECRYPT: Final = "decrypt"
PER_SCORER: Final = frozenset({AHEAD, ENCRYPT})
"""The other steps are done once."""


@dataclass
class CipherCost:
    """One batch. `steps`: those of a scorer are means over the scorers."""

    scorers: int
    queries: int
    exact: bool = False
    bytes_up: int = 0
    """Of a scorer."""
    steps: dict[str, Spent] = field(default_factory=dict)

    def one_of_each(self, ahead: bool) -> float:
        """Processor seconds per query of one scorer, the server and the asker. `ahead`: with what is precomputed."""
        left_out = {KEY} if ahead else {KEY, AHEAD, AHEAD_OF_SERVER}
        return sum(spent.cpu_seconds for name, spent in self.steps.items() if name not in left_out) / self.queries

    def everybody(self) -> float:
        """Processor seconds per query of all parties, with all but the key, which lasts for a session."""
        times = {name: self.scorers if name in PER_SCORER else 1 for name in self.steps if name != KEY}
        return sum(times[name] * self.steps[name].cpu_seconds for name in times) / self.queries


def batch_terms(entities: int, clients: int, queries: int) -> ScoreTerms:
    """Client 1 asks."""
    parties = tuple(PartyId(number) for number in range(1, clients + 1))
    return ScoreTerms(round=RoundId(1), clients=parties, asker=PartyId(1), positions=entities, queries=queries)


def paillier_cost(terms: ScoreTerms, key_bits: int | None = None) -> CipherCost:
    """`key_bits`: the default of the backend, unless given."""
    return cipher_cost(PaillierScheme(KeySize(key_bits) if key_bits else None), terms)


def bfv_cost(terms: ScoreTerms) -> CipherCost:
    return cipher_cost(BfvScheme(), terms)


def cipher_cost(scheme: Scheme, terms: ScoreTerms, seed: int = 0) -> CipherCost:
    """One batch with any cipher."""
    layout = EncryptedLayout(terms, scheme.group)
    masked, correction, total = _vectors(layout, seed)
    cost = CipherCost(len(masked), terms.queries)
    key = _timed(cost, KEY, scheme.new_key)
    uploads = []
    for vector in masked:
        encryptor = _ready(cost, AHEAD, scheme, key.public, layout)
        uploads.append(_timed(cost, ENCRYPT, partial(encryptor.encrypt, vector, layout)))
    cost.bytes_up = sum(map(len, uploads[0]))
    for name in PER_SCORER:
        spent = cost.steps[name]
        cost.steps[name] = Spent(spent.seconds / len(masked), spent.cpu_seconds / len(masked))
    server = _ready(cost, AHEAD_OF_SERVER, scheme, key.public, layout)
    adder = server.adder(layout)
    for upload in uploads:
        _timed(cost, ADD, partial(adder.add, upload))
    ciphertexts = _timed(cost, CLOSE, partial(adder.close, correction))
    decrypted = _timed(cost, DECRYPT, partial(key.decrypt, ciphertexts, layout))
    cost.exact = bool(np.array_equal(decrypted, total))
    return cost


def unpacked_phe(terms: ScoreTerms, key_bits: int, sample: int = 60) -> CipherCost:
    """phe by its own interface: a random number of full length per score, floats, one score per ciphertext."""
    phe = need("phe", EXTRA)
    cost = CipherCost(len(terms.scorers), terms.queries)
    scores = np.random.default_rng(0).normal(0, 4, sample).tolist()
    public, private = _timed(cost, KEY, lambda: phe.generate_paillier_keypair(n_length=key_bits))
    encrypted = _timed(cost, ENCRYPT, lambda: [public.encrypt(score) for score in scores])
    others = [public.encrypt(score) for score in scores]
    added = _timed(cost, ADD, lambda: [one + other for one, other in zip(encrypted, others, strict=True)])
    decrypted = _timed(cost, DECRYPT, lambda: [private.decrypt(one) for one in added])
    cost.exact = bool(np.allclose(decrypted, 2 * np.array(scores)))
    cost.bytes_up = terms.cells * key_bits // 4
    for name, times in ((ENCRYPT, 1), (ADD, len(terms.scorers) - 1), (DECRYPT, 1)):
        spent, factor = cost.steps[name], times * terms.cells / sample
        cost.steps[name] = Spent(spent.seconds * factor, spent.cpu_seconds * factor)
    return cost


def _vectors(layout: EncryptedLayout, seed: int) -> tuple[list[GroupVector], GroupVector, GroupVector]:
    """A uniform vector per scorer, a correction, and the sum of all."""
    rng, group = np.random.default_rng(seed), layout.group

    def uniform() -> GroupVector:
        vector: GroupVector = rng.integers(0, layout.modulus, layout.entries, dtype=np.uint32)
        return vector

    masked, correction = [uniform() for _ in layout.terms.scorers], uniform()
    total = correction.copy()
    for vector in masked:
        group.add_into(total, vector)
    return masked, correction, total


def _ready(cost: CipherCost, name: str, scheme: Scheme, public: bytes, layout: EncryptedLayout) -> Encryptor:
    """A loaded key for which everything that can be is computed ahead."""

    def prepare() -> Encryptor:
        encryptor = scheme.load(public)
        encryptor.begin(layout)
        encryptor.wait()
        return encryptor

    encryptor = _timed(cost, name, prepare)
    cost.steps[name].add(encryptor.ahead())
    return encryptor


def _timed(cost: CipherCost, name: str, work: Callable[[], T]) -> T:
    with cost.steps.setdefault(name, Spent()).measure():
        return work()

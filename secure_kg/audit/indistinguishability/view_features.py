"""Numbers by which real views might be told from simulated ones, from all that the server sees and can compute.

They are what an attacker would look at: structure and sizes; the bytes of every field of every kind of message; values
that come twice; secrets rebuilt from shares; every upload, as sent and with all opened masks removed, against the
sender's true input, against other senders' and against its own of another round; the weights in the total of a union.
Under the claim none of them depends on whether a view is real. All are computed alike for either kind.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.ideal.opened import OpenedSum, centred, open_sum
from protocols.ideal.views import SeenMessage, View
from protocols.sums.terms import Layout, SumTerms
from secure_kg.audit.indistinguishability.experiments import CLIENTS, KnownSum, Vector

Features: TypeAlias = dict[str, float]
_SMALL_WEIGHT: Final = 1 << 32
_SECRET_BYTES: Final = 16
"""Shorter values may come twice by chance."""


def features_of(view: View, known: Sequence[KnownSum]) -> Features:
    messages = list(view.messages())
    found: Features = {**_structure(view), **_fields(messages), **_repetitions(messages)}
    opened = [_opened(view, one) for one in known]
    for number, (one, sums) in enumerate(zip(known, opened, strict=True)):
        found |= {f"sum {number}: {name}": value for name, value in _of_sum(one, sums, messages).items()}
    found |= _of_rounds(known, messages)
    return found


def _opened(view: View, known: KnownSum) -> OpenedSum | None:
    try:
        return open_sum(view, known.terms, [PartyId(number) for number in range(1, CLIENTS + 1)], known.model)
    except ProtocolError:
        return None


def _structure(view: View) -> Features:
    found: Features = defaultdict(float)
    structure = view.structure()
    for direction, peer, _, _, kind, size in structure:
        found[f"{kind}: number"] += 1
        found[f"{kind}: bytes"] += size
        found[f"{direction} {peer}: bytes"] += size
    digest = hashlib.sha256(repr(structure).encode()).digest()
    found["structure"] = int.from_bytes(digest[:2], "little") / 65536
    return dict(found)


def values_of(message: wire.Message) -> Iterator[tuple[str, bytes]]:
    """Byte strings, arrays and texts among a message's fields."""
    for name in message.__struct_fields__:
        value: Any = getattr(message, name)
        entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        for entry in entries:
            if isinstance(entry, str):
                yield name, entry.encode()
            elif isinstance(entry, bytes | np.ndarray):
                yield name, entry if isinstance(entry, bytes) else entry.tobytes()


def _fields(messages: Collection[SeenMessage]) -> Features:
    """What the bytes of each field look like. Of what the server sends, the copies of what it has received too."""
    together: dict[str, list[bytes]] = defaultdict(list)
    for seen in messages:
        for name, value in values_of(seen.message):
            together[f"{seen.kind}.{name}"].append(value)
    return {key: value for name, values in together.items() for key, value in _bytes(name, b"".join(values)).items()}


def _bytes(name: str, data: bytes) -> Features:
    counts = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256)
    size = max(1, len(data))
    expected = size / 256
    return {
        f"{name}: chi-square": float(((counts - expected) ** 2).sum() / expected / 255),
        f"{name}: zero bytes": float(counts[0] / size),
        f"{name}: mean byte": float((counts * np.arange(256)).sum() / size),
        f"{name}: low bits": float(counts[1::2].sum() / size),
    }


def _repetitions(messages: Collection[SeenMessage]) -> Features:
    """Values that a client has sent, or clients have sent, more than once in the session."""
    values = Counter(
        value
        for seen in messages
        if seen.direction == "received"
        for _, value in values_of(seen.message)
        if len(value) >= _SECRET_BYTES
    )
    return {"repeated values": float(sum(values.values()) - len(values))}


def _of_sum(known: KnownSum, opened: OpenedSum | None, messages: Collection[SeenMessage]) -> Features:
    uploads = _uploads(known.terms, messages)
    found = _against_inputs("upload", uploads, known)
    found["opens"] = float(opened is not None)
    if opened is None:
        return found
    if known.total is not None:
        found["total as claimed"] = float(np.array_equal(opened.total, known.total))
    found |= _against_inputs("residue", opened.residues, known)
    for name, secrets in (("seeds", opened.seeds), ("mask keys", opened.mask_keys)):
        found |= _bytes(name, b"".join(secrets.values()))
        found[f"{name}: different"] = float(len(set(secrets.values())))
        found[f"{name}: longest row of zeros"] = float(max((_zeros(secret) for secret in secrets.values()), default=0))
    found |= _bytes("total", opened.total.tobytes())
    if known.weights is not None:
        weights = known.weights(opened.total)
        found |= _bytes("weights", weights.tobytes())
        found["weights: number"] = float(len(weights))
        found["weights: small"] = float((weights < _SMALL_WEIGHT).sum())
        found["weights: mean"] = float(centred(weights, known.terms.layout.group).mean()) if len(weights) else 0.0
    return found


def _zeros(secret: bytes) -> int:
    return max((len(row) for row in "".join("0" if byte == 0 else " " for byte in secret).split()), default=0)


def _uploads(terms: SumTerms[Layout], messages: Collection[SeenMessage]) -> dict[PartyId, Vector]:
    """What each client has sent to this sum, masked or in clear."""
    found = {}
    for seen in messages:
        vector = getattr(seen.message, "vector", None)
        of_this_sum = (seen.round, getattr(seen.message, "purpose", None)) == terms.key
        if of_this_sum and seen.direction == "received" and vector is not None and len(vector) == terms.layout.entries:
            found[seen.peer] = vector
    return found


def _less(vector: Vector, other: Vector | None, terms: SumTerms[Layout], sign: int = 1) -> Vector:
    """vector - sign other, in the group."""
    result = vector.copy()
    if other is not None:
        (terms.layout.group.subtract_into if sign > 0 else terms.layout.group.add_into)(result, other)
    return result


def _size(vector: Vector, terms: SumTerms[Layout]) -> float:
    """1/4 for uniform elements, next to nothing for small ones."""
    return float(np.abs(centred(vector, terms.layout.group)).mean())


def _against_inputs(name: str, vectors: Mapping[PartyId, Vector], known: KnownSum) -> Features:
    """Vectors [client] against their clients' inputs, one by one and in pairs."""
    terms, inputs = known.terms, known.inputs
    rest = {party: _less(vector, inputs.get(party), terms) for party, vector in vectors.items()}
    if not rest:
        return {f"{name}: none": 1.0}
    sizes = [_size(vector, terms) for vector in rest.values()]
    together = np.concatenate([centred(vector, terms.layout.group) for vector in rest.values()])
    found = {
        f"{name}: least rest": min(sizes),
        f"{name}: mean rest": float(np.mean(sizes)),
        f"{name}: signed rest": float(together.mean()),
        f"{name}: low bits of rest": float(np.mean([(vector & 1).mean() for vector in rest.values()])),
        f"{name}: zeros": float(np.mean([(vector == 0).mean() for vector in vectors.values()])),
        f"{name}: repeated entries": float(sum(len(vector) - len(np.unique(vector)) for vector in vectors.values())),
        f"{name}: correlation": max(_correlation(vectors[party], inputs.get(party), terms) for party in vectors),
    }
    pairs = list(combinations(sorted(rest), 2))
    for sign, what in ((1, "difference"), (-1, "sum")):
        sizes = [_size(_less(rest[first], rest[second], terms, sign), terms) for first, second in pairs]
        found[f"{name}: least {what} of two"] = min(sizes, default=0.0)
    return found


def _correlation(vector: Vector, other: Vector | None, terms: SumTerms[Layout]) -> float:
    if other is None:
        return 0.0
    left, right = centred(vector, terms.layout.group), centred(other, terms.layout.group)
    scale = float(left.std() * right.std())
    return float(np.abs(((left - left.mean()) * (right - right.mean())).mean()) / scale) if scale > 0 else 0.0


def _of_rounds(known: Sequence[KnownSum], messages: Collection[SeenMessage]) -> Features:
    """A client's uploads of two sums of one length against the true difference of its inputs."""
    found: Features = {}
    for (at, first), (to, second) in combinations(enumerate(known), 2):
        if first.terms.layout.entries != second.terms.layout.entries:
            continue
        terms, before, after = first.terms, _uploads(first.terms, messages), _uploads(second.terms, messages)
        changes: list[npt.NDArray[Any]] = []
        for party in before.keys() & after.keys():
            change = _less(after[party], before[party], terms)
            truth = second.inputs.get(party)
            if truth is not None:
                change = _less(change, _less(truth, first.inputs.get(party), terms), terms)
            changes.append(change)
        name = f"sums {at} and {to}"
        found[f"{name}: least unexplained change"] = min((_size(change, terms) for change in changes), default=0.0)
        found[f"{name}: zeros of change"] = float(np.mean([(change == 0).mean() for change in changes] or [0.0]))
        found[f"{name}: low bits of change"] = float(np.mean([(change & 1).mean() for change in changes] or [0.0]))
    return found

"""A client's record of its noised releases, and the keys of their noise.

Parties:     one client, for itself.
Adversary:   whoever makes the client repeat a round, by a crash or on purpose, to see one input with noise twice.
Guarantee:   the same input in the same round has the same noise: it is sent again as it was, and tells nothing new. Any
             other input has noise of its own, and is a further release: it is written down before it leaves, and is
             refused once the budget has no room for it. No two runs share noise, also if they share the secret. A run
             that was begun under other privacy settings is not continued.
Assumes:     the secret (`client_folder.state_key`) stays with the client. Whoever has it can take the noise off. One
             session at a time uses the folder (`client_folder.alone`).
Not covered: a record that its owner deletes, or whole lines of it. Other runs on the same triples, each of which spends
             a budget of its own.

privacy.jsonl   one line per release: round, purpose, a tag of the input that tells nothing about it, and the terms that
                the run began under: its own random name, and what its settings make of privacy

A last line that was cut short may be of a crash, in which case its input was never sent. It is charged all the same, as
a release of round 0 of which no more is known, and the line is replaced by one that says so. Any other damage is
refused, because a release that was made may be among what is missing.

All releases of a run have the same multiplier, and the budget has room for so many as the run has steps: that is the
whole account. What one round releases under several purposes is one release, clipped jointly.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from protocols.foundation.digests import digest
from protocols.sums.grid_noise import discrete_noise
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of
from secure_kg.learning.learner import NoiseKeys
from secure_kg.privacy.accounting.spending import BudgetSpent
from secure_kg.privacy.draws.noise import Integers

FILE: Final = "privacy.jsonl"
_DOMAIN: Final = b"secure-kg/noise/3"
_TAG_BYTES: Final = 16
_TERMS_BYTES: Final = 16
_UNKNOWN: Final = "unknown"
"""Purpose of a release of which no more is known than that its line was cut short."""
_Release = tuple[int, str, str, str]
"""Round, purpose, tag and terms."""


class ReleaseRecord:
    """`most`: how many releases the budget has room for. `terms`: of the run and its settings (`terms_of`)."""

    __slots__ = ("_folder", "_most", "_secret", "_state", "_tags", "_terms")

    def __init__(self, secret: bytes, folder: Path, most: int, terms: bytes) -> None:
        self._secret, self._folder, self._most, self._terms, self._state = secret, folder, most, terms, b""
        self._tags: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for round_id, purpose, tag in _read(folder / FILE, terms.hex()):
            self._tags[round_id][purpose].add(tag)
        if self.releases > most:
            raise BudgetSpent(self._refusal("another step"))

    def __repr__(self) -> str:
        return "ReleaseRecord()"

    @property
    def releases(self) -> int:
        """How many there were, of all rounds."""
        return sum(max(map(len, tags.values())) for tags in self._tags.values())

    def begin(self, state: bytes) -> None:
        """A step begins at parameters with this digest.

        Keys and tags are bound to it. Otherwise a server that repeats a round with one row changed would see the same
        noise, and no charge, exactly if no triple of the client touches that row.
        """
        self._state = state

    def key_of(self, round_id: int, purpose: str, content: bytes) -> bytes:
        """The key of the noise on an input with this digest (`protocols.sums.noise_shares.KeyOf`)."""
        tag = self._derived("tag", round_id, purpose, content)[:_TAG_BYTES].hex()
        if tag not in self._tags[round_id][purpose]:
            self._charge(round_id, purpose, tag)
        return self._derived("key", round_id, purpose, content)

    def stream(self, round_id: int, content: bytes) -> Callable[[int], bytes]:
        """Secret bytes for choices of a round that depend on `content` alone. They are no release."""
        key = self._derived("choices", round_id, "", content)
        return lambda size: hashlib.shake_256(key).digest(size)

    def _derived(self, use: str, round_id: int, purpose: str, content: bytes) -> bytes:
        round_and_purpose = (b"%d" % round_id, purpose.encode())
        bound = digest(_DOMAIN, self._terms, use.encode(), *round_and_purpose, self._state, content)
        return hmac.digest(self._secret, bound, "sha256")

    def _charge(self, round_id: int, purpose: str, tag: str) -> None:
        tags = self._tags[round_id][purpose]
        tags.add(tag)
        if self.releases > self._most:
            tags.remove(tag)
            raise BudgetSpent(self._refusal(f"round {round_id}"))
        _append(self._folder / FILE, _line(round_id, purpose, tag, self._terms.hex()))

    def _refusal(self, what: str) -> str:
        return (
            f"{self._folder / FILE}: the privacy budget is spent, with {self._most} releases; there is no room for "
            f"{what}, because rounds were trained again from another state"
        )


def terms_of(run: str, plan: object) -> bytes:
    """The terms of a run by its own random name, and by what its settings make of privacy (`PrivatePlan`, as text).

    Without the name, two runs that share a secret would add the same noise to the same sums, and a difference between
    them would tell for certain that a triple has come or gone. Without the settings, releases with little noise would
    be counted as if they had much.
    """
    return digest(_DOMAIN, run.encode(), repr(plan).encode())[:_TERMS_BYTES]


class KeyedNoise:
    """A source of noise whose key is bound to what the noise is added to (`secure_kg.privacy.draws.noise`)."""

    def __init__(self, keys: NoiseKeys, round_id: int, purpose: str, content: bytes) -> None:
        self._keys, self._round, self._purpose, self._content = keys, round_id, purpose, content

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        content = digest(self._content, repr((sigma, shape)).encode())
        return discrete_noise(sigma, shape, self._keys.key_of(self._round, self._purpose, content))


class StepNoise:
    """A source of noise for a mechanism that draws several times in a step, all of it bound to the step's whole input.

    Draws have purposes by their place in the step. So no two share a key, and all of them together are one release
    (`ReleaseRecord.releases`): the same input again, with the same choice, draws the same, and any other input, or
    another choice in a later draw, is charged.
    """

    def __init__(self, keys: NoiseKeys, round_id: int, purpose: str, content: bytes) -> None:
        self._keys, self._round, self._purpose, self._content = keys, round_id, purpose, content
        self._drawn = 0

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        self._drawn += 1
        purpose = f"{self._purpose}/{self._drawn}"
        return KeyedNoise(self._keys, self._round, purpose, self._content).integers(sigma, shape)


def _line(round_id: int, purpose: str, tag: str, terms: str) -> dict[str, object]:
    return {"round": round_id, "purpose": purpose, "tag": tag, "terms": terms}


def _append(path: Path, record: dict[str, object]) -> None:
    """On the disk before the input leaves, so that it outlives this machine."""
    try:
        with path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            stub = b"" if file.read(1) in (b"", b"\n") else b"\n"  # a whole line may lack its end
            file.write(stub + json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None


def _read(path: Path, terms: str) -> list[tuple[int, str, str]]:
    """All releases so far, with one for a last line that was cut short. Any other damage is refused."""
    if not os.path.lexists(path):
        return []
    if not path.is_file():
        raise UserError(f"{path}: not a file, so nobody knows what was released; begin a new run with its own budget")
    try:
        *lines, last = path.read_bytes().split(b"\n")
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from None
    found = []
    for number, line in enumerate(lines, start=1):
        release = _release(line)
        if release is None:
            raise UserError(
                f"{path}: line {number} is not of a record of releases, so one of them may be missing; put back the "
                "whole file, or begin a new run with a budget of its own"
            )
        found.append(release)
    if last:
        found.append(_release(last) or _charged_unknown(path, lines, terms))
    if any(release[3] != terms for release in found):
        raise UserError(
            f"{path}: these releases were made under other privacy settings, or in another run; continue with the "
            "settings that the run began with"
        )
    return [release[:3] for release in found]


def _release(line: bytes) -> _Release | None:
    """None if the line is not exactly such a record."""
    try:
        record = json_of(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.keys() != _line(0, "", "", "").keys():
        return None
    round_id, texts = record["round"], [record[name] for name in ("purpose", "tag", "terms")]
    if type(round_id) is not int or round_id < 0 or not all(isinstance(text, str) for text in texts):
        return None
    purpose, tag, terms = texts
    return (round_id, purpose, tag, terms) if len(tag) == 2 * _TAG_BYTES else None


def _charged_unknown(path: Path, lines: list[bytes], terms: str) -> _Release:
    """A release in place of a last line that was cut short. The file is never without one of the two."""
    tag = secrets.token_hex(_TAG_BYTES)
    record = json.dumps(_line(0, _UNKNOWN, tag, terms)).encode()
    beside = path.with_name(f"{path.name}.mended")
    try:
        with beside.open("wb") as file:
            file.write(b"".join(line + b"\n" for line in (*lines, record)))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None
    return 0, _UNKNOWN, tag, terms

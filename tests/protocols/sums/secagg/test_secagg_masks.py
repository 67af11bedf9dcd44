"""The masks: they are what the construction says, hide every input, are never used twice, and cover a late vector."""

import hashlib
import hmac
import struct
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.primitives.shamir import recombine
from protocols.sums.secagg.messages import AdvertiseKeys, EncryptedShares, MaskedInput, UnmaskShares
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.states import Advertised, Ready, Shared
from tests.support.secagg_sessions import (
    EVERYONE,
    ME,
    PARAMETERS,
    PURPOSE,
    SESSION,
    Federation,
    Sum,
    complete,
    everyone,
    parties,
)
from tests.support.uniformity import ENTRIES, looks_uniform

GROUPS: list[Group] = [Ring(32), Ring(64), PrimeField()]
in_every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)


def small(group: Group) -> GroupVector:
    """What an encoded embedding looks like: small numbers, half of them below zero."""
    signed = np.rint(np.random.default_rng(3).normal(0, 2.0**20, ENTRIES)).astype(np.int64)
    if isinstance(group, PrimeField):
        return (signed % MODULUS).astype(group.dtype)
    return signed.view(np.uint64).astype(group.dtype)


def is_noise(vector: GroupVector, group: Group) -> bool:
    """Uniform bytes. A field element has 61 bits: its three top bits are filled from its neighbour's low ones."""
    if isinstance(group, PrimeField):
        full = vector[: len(vector) // 2 * 2]
        spread: npt.NDArray[np.uint64] = full[::2] | (full[1::2] << np.uint64(61))
        return looks_uniform(np.concatenate([spread, full[1::2] | (full[::2] << np.uint64(61))]))
    return looks_uniform(vector)


def combined(group: Group, left: GroupVector, right: GroupVector, *, subtract: bool = True) -> GroupVector:
    total = left.copy()
    (group.subtract_into if subtract else group.add_into)(total, right)
    return total


def unrelated(group: Group, left: GroupVector, right: GroupVector) -> bool:
    """Whether two uploads of the same input share no mask: their difference is noise as well, and so is their sum."""
    return is_noise(combined(group, left, right), group) and is_noise(
        combined(group, left, right, subtract=False), group
    )


def uploads(begun: Sum) -> dict[PartyId, GroupVector]:
    """Everybody's masked input; all inputs are the same small numbers."""
    begun.until(Step.MASKED_INPUT)
    sent = {}
    for party in begun.clients:
        begun.inputs[party] = small(begun.terms.sum.layout.group)
        answer = begun.answer(party)
        assert isinstance(answer, MaskedInput)
        begun.server.receive(party, answer)
        sent[party] = answer.vector.copy()
    return sent


def added(group: Group, vectors: list[GroupVector]) -> GroupVector:
    total = group.zeros(ENTRIES)
    for vector in vectors:
        group.add_into(total, vector)
    return total


# --- hiding ---------------------------------------------------------------------------------------------------------


@in_every_group
def test_the_measure_tells_inputs_from_noise(group: Group) -> None:
    rng = np.random.default_rng(8)
    bound = MODULUS if isinstance(group, PrimeField) else 1 << group.element_bytes * 8
    noise = rng.integers(0, bound, ENTRIES, dtype=group.dtype)
    assert is_noise(noise, group)
    assert not is_noise(small(group), group)
    assert not is_noise(group.zeros(ENTRIES), group)
    assert not is_noise(added(group, [small(group)] * 3), group)
    assert not is_noise(noise // 2, group)
    assert not is_noise(noise & ~np.array(255, dtype=group.dtype), group)


@in_every_group
@pytest.mark.parametrize("count", [2, 3, 5])
def test_an_upload_looks_uniform_and_its_input_does_not(count: int, group: Group) -> None:
    begun = Federation(everyone(count)).begin(complete(count, 2), group, ENTRIES)
    for vector in uploads(begun).values():
        assert is_noise(vector, group)
        assert is_noise(combined(group, vector, np.roll(vector, 1)), group)


@in_every_group
def test_a_sum_with_one_input_missing_looks_uniform(group: Group) -> None:
    """Without recovery, any part of the uploads is noise; so is their whole, until the self masks are removed."""
    begun = Federation(EVERYONE).begin(PARAMETERS, group, ENTRIES)
    sent = uploads(begun)
    for size in (1, 2, 3, 4):
        for chosen in combinations(EVERYONE, size):
            assert is_noise(added(group, [sent[party] for party in chosen]), group)
    begun.inbox = begun.server.close()
    total = begun.run()
    assert not is_noise(total, group)
    assert total.tolist() == begun.exact(EVERYONE)


@in_every_group
def test_two_runs_on_the_same_input_share_no_mask(group: Group) -> None:
    left, right = (uploads(Federation(EVERYONE).begin(PARAMETERS, group, ENTRIES)) for _ in range(2))
    for party in EVERYONE:
        assert unrelated(group, left[party], right[party])
    assert not unrelated(group, left[ME], left[ME])


@in_every_group
def test_the_same_input_is_masked_afresh_in_every_round_and_purpose(group: Group) -> None:
    federation = Federation(EVERYONE)
    sent = [
        uploads(federation.begin(PARAMETERS, group, ENTRIES, round_id=round_id, purpose=purpose))
        for round_id, purpose in [(0, "rows"), (0, "counts"), (1, "rows"), (1, "counts")]
    ]
    for left, right in combinations(sent, 2):
        assert unrelated(group, left[ME], right[ME])


def test_two_groups_share_no_mask() -> None:
    """Neither as words of the same width nor byte by byte."""
    federation = Federation(EVERYONE)
    ring, field = Ring(64), PrimeField()
    in_ring = uploads(federation.begin(PARAMETERS, ring, ENTRIES))[ME]
    in_field = uploads(federation.begin(PARAMETERS, field, ENTRIES))[ME]
    narrow = uploads(federation.begin(PARAMETERS, Ring(32), ENTRIES))[ME]
    assert looks_uniform(in_ring - in_field)
    assert looks_uniform(in_ring.view(narrow.dtype)[:ENTRIES] - narrow)


def test_the_uploads_of_two_clients_are_unrelated() -> None:
    """All inputs are equal: the sum and the difference of any two uploads are noise."""
    group = Ring(64)
    sent = uploads(Federation(EVERYONE).begin(PARAMETERS, group, ENTRIES))
    for left, right in combinations(EVERYONE, 2):
        assert unrelated(group, sent[left], sent[right])


def test_every_sum_has_fresh_mask_keys() -> None:
    """Over sums, clients and sessions no public mask key returns, nor a channel key as a mask key."""
    keys: list[bytes] = []
    for federation in (Federation(EVERYONE), Federation(EVERYONE)):
        keys += federation.directory.channel_keys.values()
        for _ in range(5):
            for client in federation.begin(PARAMETERS).clients.values():
                advert = client.start()
                assert isinstance(advert, AdvertiseKeys)
                keys.append(advert.mask_key)
    assert len(set(keys)) == len(keys) == 2 * (4 + 5 * 4)


def test_every_sum_has_fresh_seeds() -> None:
    federation, seeds = Federation(EVERYONE), []
    for _ in range(5):
        begun = federation.begin(PARAMETERS).until(Step.SHARE_KEYS)
        for party in EVERYONE:
            begun.answer(party)
            state = begun.clients[party].state
            assert isinstance(state, Shared)
            seeds.append(state.seed)
    assert len(set(seeds)) == 20


# --- the construction, anew -----------------------------------------------------------------------------------------
# Nothing below uses the package's key derivation, encodings or generators: HKDF is two lines of HMAC, the agreement is
# the library's X25519 and the stream its AES-256-CTR.


def prefixed(*fields: bytes, width: str) -> bytes:
    return b"".join(struct.pack(width, len(field)) + field for field in fields)


def sha256_of(*fields: bytes) -> bytes:
    return hashlib.sha256(prefixed(*fields, width="<Q")).digest()


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for one block of output."""
    extracted = hmac.new(salt, secret, "sha256").digest()
    return hmac.new(extracted, info + b"\x01", "sha256").digest()


def info_for(round_id: int, first: int, second: int, use: str, binding: bytes) -> bytes:
    return prefixed(
        b"secure-kg/secagg",
        f"{use}/{PURPOSE}".encode(),
        SESSION,
        struct.pack("<4Q", 3, round_id, first, second),
        binding,
        width="<I",
    )


def key_for(secret: bytes, round_id: int, first: int, second: int, use: str, binding: bytes) -> bytes:
    return hkdf(secret, SESSION, info_for(round_id, first, second, use, binding))


def stream(key: bytes, group: Group, length: int) -> list[int]:
    """The keystream from counter block 2 on as elements, one word at a time."""
    encryptor = Cipher(algorithms.AES(key), modes.CTR((2).to_bytes(16, "big"))).encryptor()
    elements: list[int] = []
    while len(elements) < length:
        word = int.from_bytes(encryptor.update(bytes(group.element_bytes)), "little")
        if isinstance(group, PrimeField):
            word &= MODULUS
            if word == MODULUS:
                continue
        elements.append(word)
    return elements


def terms_digest(begun: Sum, federation: Federation) -> bytes:
    channel_keys = sorted(federation.directory.channel_keys.items())
    transcript = sha256_of(
        b"secure-kg/secagg",
        struct.pack("<Q", 3),
        SESSION,
        b"",  # no greeting
        *(struct.pack("<Q", party) + key for party, key in channel_keys),
    )
    figures = begun.terms.parameters
    return sha256_of(
        transcript,
        struct.pack(
            "<6Q",
            begun.terms.sum.round,
            figures.degree,
            figures.threshold,
            figures.min_survivors,
            figures.least_present,
            begun.terms.sum.layout.entries,
        ),
        PURPOSE.encode(),
        b"".join(struct.pack("<Q", party) for party in sorted(federation.clients)),
        begun.terms.sum.layout.group.name.encode(),
    )


@in_every_group
def test_an_upload_is_the_input_plus_the_masks_of_the_construction(group: Group) -> None:
    """y_u = x_u + PRG(b_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv), from the bare secrets."""
    clients = parties(2, 3, 70_000, 5)
    federation = Federation(clients)
    begun = federation.begin(complete(4, 3), group, 50, model=b"digest of the model")
    me = PartyId(3)
    modulus = MODULUS if isinstance(group, PrimeField) else 1 << 8 * group.element_bytes
    begun.until(Step.SHARE_KEYS)
    state = begun.clients[me].state
    assert isinstance(state, Advertised)
    private = X25519PrivateKey.from_private_bytes(state.mask_key.secret_for_sharing())
    public = {party: begun.server._adverts[party].mask_key for party in clients}
    for party in clients:
        begun.server.receive(party, begun.answer(party))
    shared = begun.clients[me].state
    assert isinstance(shared, Shared)
    begun.inbox = begun.server.close()

    binding = terms_digest(begun, federation)
    expected = [int(entry) for entry in begun.inputs[me]]
    own = key_for(shared.seed, begun.terms.sum.round, me, me, "self mask", binding)
    expected = [entry + mask for entry, mask in zip(expected, stream(own, group, 50), strict=True)]
    for peer in clients:
        if peer == me:
            continue
        low, high = sorted((me, peer))
        agreed = private.exchange(X25519PublicKey.from_public_bytes(public[peer]))
        pair = sha256_of(binding, public[low], public[high])
        key = key_for(agreed, begun.terms.sum.round, low, high, "pairwise mask", pair)
        sign = 1 if me < peer else -1
        expected = [entry + sign * mask for entry, mask in zip(expected, stream(key, group, 50), strict=True)]
    answer = begun.answer(me)
    assert isinstance(answer, MaskedInput)
    assert answer.vector.tolist() == [entry % modulus for entry in expected]


def test_shares_are_sealed_under_the_key_of_the_construction() -> None:
    """AES-256-GCM; key and associated data are bound to the terms and to the mask keys of sender and receiver."""
    federation = Federation(EVERYONE)
    begun = federation.begin(PARAMETERS).until(Step.SHARE_KEYS)
    channels = begun.clients[ME]._channels
    assert channels is not None
    assert channels._key is not None
    private = X25519PrivateKey.from_private_bytes(channels._key.secret_for_sharing())
    mask_keys = {party: begun.server._adverts[party].mask_key for party in EVERYONE}
    begun.step()
    for peer in EVERYONE:
        if peer == ME:
            continue
        message = begun.inbox[peer]
        assert isinstance(message, EncryptedShares)
        secret = private.exchange(X25519PublicKey.from_public_bytes(federation.directory.channel_keys[peer]))
        applied = bytes(8)  # two empty fields, each behind its length
        binding = sha256_of(terms_digest(begun, federation), applied, mask_keys[ME], mask_keys[peer], b"")
        key = key_for(secret, begun.terms.sum.round, ME, peer, "shares", binding)
        nonce, sealed = message.sealed[ME][:12], message.sealed[ME][12:]
        opened = AESGCM(key).decrypt(nonce, sealed, info_for(begun.terms.sum.round, ME, peer, "shares", binding))
        begun.clients[peer].receive(message)
        ready = begun.clients[peer].state
        assert isinstance(ready, Ready)
        assert opened == ready.held[ME].mask_key + ready.held[ME].seed


def test_the_seed_commitment_is_the_hash_of_the_construction() -> None:
    federation = Federation(EVERYONE)
    begun = federation.begin(PARAMETERS).until(Step.SHARE_KEYS)
    answer = begun.answer(ME)
    state = begun.clients[ME].state
    assert isinstance(state, Shared)
    expected = sha256_of(b"seed commitment", terms_digest(begun, federation), struct.pack("<Q", ME), state.seed)
    assert getattr(answer, "seed_commitment", None) == expected


def test_the_digest_of_the_peers_is_the_hash_of_the_construction() -> None:
    federation = Federation(parties(2, 3, 70_000, 5))
    begun = federation.begin(complete(4, 3)).until(Step.MASKED_INPUT)
    peers = b"".join(struct.pack("<Q", peer) for peer in (3, 5, 70_000))
    expected = sha256_of(b"peers", terms_digest(begun, federation), struct.pack("<Q", 2), peers)
    assert getattr(begun.answer(PartyId(2)), "peers", None) == expected


# --- what recovery opens --------------------------------------------------------------------------------------------


@in_every_group
def test_a_late_vector_stays_hidden_after_its_mask_key_was_opened(group: Group) -> None:
    """Client 2's vector comes too late. The server has its mask key and removes all its pairwise masks: still noise.

    With the seed as well, which the clients then refuse to open, the input would lie open: that is the control.
    """
    federation = Federation(EVERYONE)
    begun = federation.begin(PARAMETERS, group, ENTRIES).until(Step.MASKED_INPUT)
    begun.inputs = {party: small(group) for party in EVERYONE}
    client = begun.clients[ME]
    client.receive(begun.inbox[ME])
    ready = client.state
    assert isinstance(ready, Ready)
    late = client.set_input(begun.inputs[ME].copy()).vector
    begun.step(silent=[ME])
    shares: dict[int, bytes] = {}
    for party in sorted(begun.server.awaited):
        answer = begun.answer(party)
        assert isinstance(answer, UnmaskShares)
        shares[int(party)] = answer.mask_key_shares[ME]
        assert ME not in answer.seed_shares
        begun.server.receive(party, answer)
    begun.server.close()
    assert begun.server.total().tolist() == begun.exact([party for party in EVERYONE if party != ME])

    opened = X25519PrivateKey.from_private_bytes(recombine(shares, 3))
    public = {party: begun.server._adverts[party].mask_key for party in EVERYONE}
    assert opened.public_key().public_bytes_raw() == public[ME]
    binding = terms_digest(begun, federation)
    bare = late.copy()
    for peer in EVERYONE:
        if peer == ME:
            continue
        low, high = sorted((ME, peer))
        agreed = opened.exchange(X25519PublicKey.from_public_bytes(public[peer]))
        pair = sha256_of(binding, public[low], public[high])
        key = key_for(agreed, begun.terms.sum.round, low, high, "pairwise mask", pair)
        assert key == ready.masks[peer]
        mask = np.array(stream(key, group, ENTRIES), dtype=group.dtype)
        (group.subtract_into if peer > ME else group.add_into)(bare, mask)
    assert is_noise(bare, group)
    group.subtract_into(bare, np.array(stream(ready.self_mask, group, ENTRIES), dtype=group.dtype))
    assert bare.tolist() == begun.inputs[ME].tolist()


def test_an_opened_mask_key_says_nothing_about_the_next_sum() -> None:
    """Recovery opens the key of one sum. The next one's pairs agree with other keys, so its masks stay unknown."""
    federation = Federation(EVERYONE)
    first = federation.begin(PARAMETERS).until(Step.SHARE_KEYS)
    state = first.clients[ME].state
    assert isinstance(state, Advertised)
    opened = X25519PrivateKey.from_private_bytes(state.mask_key.secret_for_sharing())
    masks = set()
    following = federation.begin(PARAMETERS).until(Step.MASKED_INPUT)
    following.clients[ME].receive(following.inbox[ME])
    ready = following.clients[ME].state
    assert isinstance(ready, Ready)
    public = {party: following.server._adverts[party].mask_key for party in EVERYONE}
    binding = terms_digest(following, federation)
    for peer in EVERYONE:
        if peer != ME:
            low, high = sorted((ME, peer))
            agreed = opened.exchange(X25519PublicKey.from_public_bytes(public[peer]))
            pair = sha256_of(binding, public[low], public[high])
            masks.add(key_for(agreed, following.terms.sum.round, low, high, "pairwise mask", pair))
    assert len(masks) == 3
    assert not masks & set(ready.masks.values())

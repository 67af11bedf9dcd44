"""BFV: exact sums with noise to spare, and bytes of other parties that end in a refusal, never in a crash."""

import pickle
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.scores.encrypted import seal_bytes
from protocols.scores.encrypted.bfv import COEFFICIENT_BITS, DEGREE, PLAIN_MODULUS, BfvDecryptionKey, BfvScheme
from protocols.scores.terms import MOST_CLIENTS
from tests.support.encrypted_scores import layout_of, sum_of, uniform
from tests.support.score_batches import hold_batches, some_scores, terms_of

tenseal = pytest.importorskip("tenseal")


@pytest.fixture(scope="module")
def scheme() -> BfvScheme:
    return BfvScheme()


@pytest.fixture(scope="module")
def key(scheme: BfvScheme) -> BfvDecryptionKey:
    return scheme.new_key()


# --- sums -----------------------------------------------------------------------------------------------------------


@given(st.integers(3, 12), st.sampled_from([1, 7, 3276, 3277, 3278]), st.integers(0, 2**16))
@settings(deadline=None, max_examples=10)
def test_sums_are_exact(clients: int, positions: int, seed: int) -> None:
    scheme = BfvScheme()
    layout, key = layout_of(scheme, clients, positions), KEYS.setdefault(0, scheme.new_key())
    assert scheme.ciphertexts(layout) == -(-layout.entries // DEGREE)
    vectors = [uniform(layout, seed + number) for number in range(clients)]
    encryptor = scheme.load(key.public)
    adder = encryptor.adder(layout)
    for vector in vectors[1:]:
        adder.add(encryptor.encrypt(vector, layout))
    assert np.array_equal(key.decrypt(adder.close(vectors[0]), layout), sum_of(layout, *vectors))


KEYS: dict[int, BfvDecryptionKey] = {}


@pytest.mark.parametrize("value", [0, 1, PLAIN_MODULUS // 2, PLAIN_MODULUS // 2 + 1, PLAIN_MODULUS - 1])
def test_edges_of_the_plain_modulus(scheme: BfvScheme, key: BfvDecryptionKey, value: int) -> None:
    layout = layout_of(scheme)
    vector = np.full(layout.entries, value, dtype="<u4")
    encryptor = scheme.load(key.public)
    assert np.array_equal(key.decrypt(encryptor.encrypt(vector, layout), layout), vector)


def sealapi_parties() -> tuple[Any, Any, Any, Any, Any]:
    """SEAL itself under the same parameters: encoder, encryptor, evaluator, decryptor, context."""
    seal = pytest.importorskip("tenseal.sealapi")
    parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    parameters.set_poly_modulus_degree(DEGREE)
    parameters.set_coeff_modulus(seal.CoeffModulus.Create(DEGREE, list(COEFFICIENT_BITS)))
    parameters.set_plain_modulus(PLAIN_MODULUS)
    context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)
    assert context.parameters_error_message() == "valid"
    generator, public = seal.KeyGenerator(context), seal.PublicKey()
    generator.create_public_key(public)
    encryptor, decryptor = seal.Encryptor(context, public), seal.Decryptor(context, generator.secret_key())
    return seal.BatchEncoder(context), encryptor, seal.Evaluator(context), decryptor, context


def test_noise_of_the_largest_sum_leaves_bits_to_spare() -> None:
    """12 scorers and the correction. The docstring proves a noise below 2^16 of 2^20: four bits in the worst case."""
    seal = pytest.importorskip("tenseal.sealapi")
    encoder, encryptor, evaluator, decryptor, context = sealapi_parties()
    rng, total, expected = np.random.default_rng(0), None, np.zeros(DEGREE, dtype=np.int64)
    for number in range(MOST_CLIENTS + 1):
        values = rng.integers(0, PLAIN_MODULUS, DEGREE) if number else np.full(DEGREE, PLAIN_MODULUS - 1)
        plain, fresh = seal.Plaintext(), seal.Ciphertext(context)
        encoder.encode(values.tolist(), plain)
        encryptor.encrypt(plain, fresh)
        assert decryptor.invariant_noise_budget(fresh) >= 20 - 12
        if total is None:
            total = fresh
        else:
            evaluator.add_inplace(total, fresh)
        expected = (expected + values) % PLAIN_MODULUS
    assert decryptor.invariant_noise_budget(total) >= 20 - 16
    opened = seal.Plaintext()
    decryptor.decrypt(total, opened)
    assert np.array_equal(encoder.decode_uint64(opened), expected)


def test_ciphertexts_and_totals_are_random(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout = layout_of(scheme)
    vector, encryptor = uniform(layout, 1), scheme.load(key.public)
    first, second = encryptor.encrypt(vector, layout), encryptor.encrypt(vector, layout)
    assert first != second
    totals = []
    for _ in range(2):
        adder = encryptor.adder(layout)
        adder.add(first)
        totals.append(adder.close(layout.group.zeros(layout.entries)))
    assert totals[0] != totals[1]
    assert totals[0] != first


def test_sizes_are_within_what_is_admitted(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout = layout_of(scheme, positions=3276)
    (one,) = scheme.load(key.public).encrypt(uniform(layout, 1), layout)
    assert 0.8 * scheme.ciphertext_bytes < len(one) <= scheme.ciphertext_bytes
    assert 0.8 * scheme.key_bytes < len(key.public) <= scheme.key_bytes


def test_the_public_key_has_no_secret_in_it_and_nothing_to_multiply_with(
    scheme: BfvScheme, key: BfvDecryptionKey
) -> None:
    context = scheme.load(key.public).context
    assert context.has_public_key()
    assert not context.has_secret_key()
    assert not context.has_relin_keys()
    assert not context.has_galois_keys()
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(key)


def test_vectors_of_another_layout_are_not_encrypted(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout = layout_of(scheme)
    beyond = uniform(layout, 1)
    beyond[3] = PLAIN_MODULUS
    for wrong in (uniform(layout, 1)[:-1], beyond):
        with pytest.raises(ValueError, match="is not a vector"):
            scheme.load(key.public).encrypt(wrong, layout)


# --- bytes of other parties -----------------------------------------------------------------------------------------


def mutations(good: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Truncated, lengthened, overwritten at the front, overwritten anywhere, and garbage."""
    rng = random.Random(seed)
    for number in range(count):
        bent = bytearray(good)
        match number % 5:
            case 0:
                bent = bent[: rng.randrange(len(bent))]
            case 1:
                at = rng.randrange(len(bent))
                bent[at:at] = rng.randbytes(8)
            case 2:
                for _ in range(3):
                    bent[rng.randrange(120)] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 3:
                bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
            case _:
                bent = bytearray(rng.randbytes(rng.randrange(3000)))
        if bent != good:
            yield bytes(bent)


def survived(scheme: BfvScheme, key: BfvDecryptionKey, hostile: bytes) -> bool:
    """Whether it passed for a ciphertext, and then was added and decrypted like one; else it was refused."""
    layout = layout_of(scheme)
    encryptor = scheme.load(key.public)
    adder = encryptor.adder(layout)
    try:
        adder.add([hostile])
        total = key.decrypt(adder.close(layout.group.zeros(layout.entries)), layout)
        layout.group.require(total, layout.entries)
        return True
    except PeerMisbehaved:
        return False


def test_hostile_ciphertexts_are_refused_or_harmless(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout = layout_of(scheme)
    (good,) = scheme.load(key.public).encrypt(uniform(layout, 1), layout)
    assert survived(scheme, key, good)
    outcomes = [survived(scheme, key, one) for one in mutations(good, 1, 150)]
    assert outcomes.count(False) > 90
    # A flipped bit may give another coefficient in range: a ciphertext like any other, of nobody knows what.


def test_hostile_keys_are_refused_or_harmless(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout, refused = layout_of(scheme), 0
    for hostile in mutations(key.public, 2, 100):
        try:
            scheme.load(hostile).encrypt(uniform(layout, 1), layout)
        except PeerMisbehaved:
            refused += 1
    assert refused > 60
    with pytest.raises(PeerMisbehaved, match="a BFV key of"):
        scheme.load(bytes(scheme.key_bytes + 1))


def uncompressed(parms: list[int], **bent: Any) -> bytes:
    """A ciphertext as SEAL 4 saves it without compression, field by field."""
    fields: dict[str, Any] = {"ntt": 0, "size": 2, "degree": DEGREE, "moduli": 1, "scale": 1.0, "said": None} | bent
    entries = fields["size"] * DEGREE
    data = np.random.default_rng(0).integers(0, 2**53, min(entries, 1 << 17)).astype("<u8").tobytes()

    def framed(body: bytes) -> bytes:
        return struct.pack("<HBBBBHQ", 0xA15E, 16, 4, 3, 0, 0, 16 + len(body)) + body

    array = framed(struct.pack("<Q", entries if fields["said"] is None else fields["said"]) + data)
    head = struct.pack("<B3QdQ", *(fields[name] for name in ("ntt", "size", "degree", "moduli", "scale")), 1)
    return framed(struct.pack("<4Q", *parms) + head + array)


@pytest.mark.parametrize(
    "bent",
    [
        {"size": 3},
        {"size": 16},
        {"size": 1},
        {"size": 17},
        {"size": 0},
        {"ntt": 1},
        {"degree": 8192},
        {"degree": 2**40},
        {"moduli": 2},
        {"moduli": 2**62},
        {"scale": 2.0},
        {"scale": float("nan")},
        {"said": 2**61},
        {"said": 8193},
        {"said": 0},
    ],
    ids=str,
)
def test_ciphertexts_of_another_shape_are_refused(
    scheme: BfvScheme, key: BfvDecryptionKey, bent: dict[str, Any]
) -> None:
    layout = layout_of(scheme)
    (made,) = scheme.load(key.public).encrypt_vectors(uniform(layout, 1), layout)
    parms = made.ciphertext()[0].parms_id()
    assert survived(scheme, key, uncompressed(parms))
    assert not survived(scheme, key, uncompressed(parms, **bent))


def test_a_transparent_ciphertext_is_refused(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    layout = layout_of(scheme)
    (made,) = scheme.load(key.public).encrypt_vectors(uniform(layout, 1), layout)
    clear = bytearray(uncompressed(made.ciphertext()[0].parms_id()))
    clear[-8 * DEGREE :] = bytes(8 * DEGREE)  # the polynomial that the secret key is multiplied with
    assert not survived(scheme, key, bytes(clear))


@pytest.mark.parametrize(
    ("degree", "modulus", "bits"),
    [(8192, 4294475777, [54, 55]), (4096, 40961, [54, 55]), (4096, PLAIN_MODULUS, [50, 55])],
)
def test_keys_and_ciphertexts_of_other_parameters_are_refused(
    scheme: BfvScheme, key: BfvDecryptionKey, degree: int, modulus: int, bits: list[int]
) -> None:
    other = tenseal.context(tenseal.SCHEME_TYPE.BFV, degree, modulus, coeff_mod_bit_sizes=bits, n_threads=1)
    saved = other.serialize(save_public_key=True, save_secret_key=False, save_galois_keys=False, save_relin_keys=False)
    with pytest.raises(PeerMisbehaved, match="a BFV key of"):
        scheme.load(seal_bytes.public_key_of(saved))
    with pytest.raises(PeerMisbehaved, match="a BFV key of"):
        scheme.load(saved)
    ciphertext = seal_bytes.inner(tenseal.bfv_vector(other, [1] * degree).serialize(), degree)
    assert not survived(scheme, key, ciphertext)


def test_no_wrapper_of_tenseal_is_taken_from_outside(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    """TenSEAL believes a vector that says how long it is, also if it says more than there is and memory ends there."""
    layout = layout_of(scheme)
    (made,) = scheme.load(key.public).encrypt_vectors(uniform(layout, 1), layout)
    false = seal_bytes.wrapped_vector(seal_bytes.inner(made.serialize(), DEGREE), DEGREE - 4)
    assert len(tenseal.bfv_vector_from(key._context, false).decrypt()) == DEGREE - 4
    assert not survived(scheme, key, false)
    assert not survived(scheme, key, made.serialize())


def key_of_zeros() -> bytes:
    """As SEAL saves a public key, uncompressed, with both polynomials zero. A digest of its parameters comes first."""
    words = 2 * 2 * DEGREE
    parameters = "13545fd211aeb2c53cc0453acfa82f9f339a4989adee876d7f156f8472556eeb"
    body = bytes.fromhex(parameters) + struct.pack("<BQQQdQ", 1, 2, DEGREE, 2, 1.0, 1)
    body += struct.pack("<HBBBBHQ", 0xA15E, 16, 4, 3, 0, 0, 24 + 8 * words) + struct.pack("<Q", words)
    body += bytes(8 * words)
    return struct.pack("<HBBBBHQ", 0xA15E, 16, 4, 3, 0, 0, 16 + len(body)) + body


def test_a_key_that_encrypts_nothing_is_refused_in_the_askers_name(
    scheme: BfvScheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What scorers make under it nobody would take: they would be blamed for what the asker did."""
    with pytest.raises(PeerMisbehaved, match="encrypts nothing"):
        scheme.load(key_of_zeros())
    monkeypatch.setattr(BfvDecryptionKey, "public", property(lambda self: key_of_zeros()))
    terms = terms_of(4, 10)
    result = hold_batches("bfv", [(terms, some_scores(terms))])
    assert result.answers == []
    assert all("client 1 asks under a BFV key" in str(problem) for problem in result.problems.values())


# --- wrappers -------------------------------------------------------------------------------------------------------


def test_wrappers_are_written_as_tenseal_writes_them(scheme: BfvScheme, key: BfvDecryptionKey) -> None:
    made = tenseal.bfv_vector(scheme.load(key.public).context, [5] * DEGREE).serialize()
    assert seal_bytes.wrapped_vector(seal_bytes.inner(made, DEGREE), DEGREE) == made
    saved = scheme._saved(key._context)
    template = seal_bytes.Template.of(saved)
    assert template.with_key(seal_bytes.public_key_of(saved)) == saved
    assert key.public not in template.before + template.flags + template.after


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_protocol_buffers(number: int) -> None:
    written = seal_bytes._varint(number)
    assert seal_bytes._read_varint(b"\xff" + written + b"\x00", 1) == (number, 1 + len(written))
    assert len(written) == max(1, -(-number.bit_length() // 7))


def test_what_tenseal_did_not_save_is_not_taken_apart() -> None:
    with pytest.raises(ValueError, match="another form"):
        seal_bytes.inner(seal_bytes.wrapped_vector(b"x", 5), 6)
    with pytest.raises(ValueError, match="without a public key"):
        seal_bytes.public_key_of(seal_bytes.wrapped_vector(b"", 5))

"""Paillier's cipher: keys of the right form, ciphertexts that are random and add up, refusals of everything else."""

import math
import pickle
import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.scores.encrypted import obfuscators, paillier_keys
from protocols.scores.encrypted.obfuscators import Obfuscators
from protocols.scores.encrypted.paillier import PaillierDecryptionKey, PaillierScheme
from protocols.scores.encrypted.paillier_keys import KeySize, draw_primes, fit, read_modulus, write_modulus
from tests.support.encrypted_scores import SHORT_KEYS, layout_of, sum_of, uniform

gmpy2 = pytest.importorskip("gmpy2")
phe = pytest.importorskip("phe")


@pytest.fixture(scope="module")
def scheme() -> PaillierScheme:
    return PaillierScheme(SHORT_KEYS)


@pytest.fixture(scope="module")
def key(scheme: PaillierScheme) -> PaillierDecryptionKey:
    return scheme.new_key()


# --- keys -----------------------------------------------------------------------------------------------------------


def test_drawn_primes_fit() -> None:
    for _ in range(3):
        p, q = draw_primes(SHORT_KEYS)
        assert gmpy2.is_prime(p)
        assert gmpy2.is_prime(q)
        assert p % 4 == q % 4 == 3
        assert math.gcd(p - 1, q - 1) == 2
        assert (p * q).bit_length() == SHORT_KEYS.bits


@pytest.mark.parametrize(
    ("p", "q", "fits"), [(7, 11, True), (7, 7, False), (5, 7, False), (7, 19, False), (7, 13, False)]
)
def test_primes_of_another_form_do_not_fit(p: int, q: int, fits: bool) -> None:
    assert fit(p, q) == fits == fit(q, p)


@pytest.mark.parametrize("bits", [0, 512, 1024, 1984, 2047, 2049, 8256])
def test_short_and_odd_lengths_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="a multiple of 64 from 2048 to 8192"):
        KeySize(bits)
    if bits not in (1024, 1984):
        with pytest.raises(ValueError, match="a multiple of 64"):
            KeySize(bits, for_tests=True)


def test_keys_have_3072_bits_unless_somebody_says_otherwise() -> None:
    assert PaillierScheme().size == KeySize(3072)
    assert KeySize(2048).bytes == 256


def test_a_modulus_is_read_as_it_was_written_and_nothing_else_is() -> None:
    modulus = (1 << 1023) + 1
    written = write_modulus(modulus, SHORT_KEYS)
    assert read_modulus(written, SHORT_KEYS) == modulus
    for wrong in (b"", written[:-1], written + b"\x00", write_modulus(modulus >> 1, SHORT_KEYS), bytes(128)):
        with pytest.raises(PeerMisbehaved, match="does not have 1024 bits"):
            read_modulus(wrong, SHORT_KEYS)
    with pytest.raises(PeerMisbehaved, match="even"):
        read_modulus(write_modulus(modulus - 1, SHORT_KEYS), SHORT_KEYS)


def test_private_keys_stay_in_memory(key: PaillierDecryptionKey) -> None:
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(key)
    assert repr(key) == "PaillierDecryptionKey(1024 bits)"


# --- obfuscators ----------------------------------------------------------------------------------------------------


def modulus_of(key: PaillierDecryptionKey) -> int:
    return int.from_bytes(key.public, "little")


def test_obfuscators_encrypt_zero_and_none_comes_twice(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    made = Obfuscators(gmpy2, modulus_of(key), 1024)
    made.begin(5)
    made.wait()
    assert made.ahead().cpu_seconds > 0
    assert made.ahead().cpu_seconds == 0
    drawn = [*made.take(8), *made.take(2)]
    assert len({int(one) for one in drawn}) == 10
    assert all(key._private.raw_decrypt(int(one)) == 0 for one in drawn)


@pytest.mark.parametrize("count", [1, 20, 1000])
def test_powers_of_the_table_are_powers(
    key: PaillierDecryptionKey, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With digits that are known, an obfuscator is (h^n)^a for the exponent that they write."""
    made = Obfuscators(gmpy2, modulus_of(key), 1024)
    made._make_table(count)
    width = obfuscators._width(count, 1024)
    rows = obfuscators._row_count(width, 1024)
    assert len(made._rows) == rows
    assert rows * width >= 512
    words = np.random.default_rng(count).integers(0, 2**16, rows).astype("<u2")
    monkeypatch.setattr(secrets, "token_bytes", lambda size: words.tobytes())
    exponent = sum((int(word) % 2**width) << (width * place) for place, word in enumerate(words))
    square = gmpy2.mpz(modulus_of(key)) ** 2
    assert made._one() == gmpy2.powmod(made._rows[0][1], exponent, square)


def test_the_base_is_a_nonresidue_of_symbol_one(key: PaillierDecryptionKey) -> None:
    """h = -y^2: its Jacobi symbol is 1, and it is a square modulo neither prime."""
    h = Obfuscators(gmpy2, modulus_of(key), 1024)._draw_h()
    p, q = int(key._private.p), int(key._private.q)
    assert gmpy2.jacobi(h, p * q) == 1
    assert gmpy2.legendre(h, p) == gmpy2.legendre(h, q) == -1


def test_wide_digits_pay_for_many_and_tables_stay_small() -> None:
    widths = [obfuscators._width(count, 3072) for count in (1, 10, 300, 10_000, 10**7)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    assert all((obfuscators._row_count(width, 3072) << width) * 768 <= 1 << 26 for width in widths)


def test_a_key_with_a_factor_that_shows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Obfuscators(gmpy2, 3 * 1000003, 1024)
    monkeypatch.setattr(secrets, "randbelow", lambda limit: 5)
    made.begin(2)
    with pytest.raises(PeerMisbehaved, match="guess"):
        made.take(2)


# --- ciphertexts ----------------------------------------------------------------------------------------------------


@given(st.integers(3, 12), st.integers(1, 60), st.integers(0, 2**16))
@settings(deadline=None, max_examples=10)
def test_sums_are_exact(clients: int, positions: int, seed: int) -> None:
    scheme = PaillierScheme(SHORT_KEYS)
    layout, key = layout_of(scheme, clients, positions), KEYS.setdefault(0, scheme.new_key())
    vectors = [uniform(layout, seed + number) for number in range(clients)]
    encryptor = scheme.load(key.public)
    adder = encryptor.adder(layout)
    for vector in vectors[1:]:
        adder.add(encryptor.encrypt(vector, layout))
    assert np.array_equal(key.decrypt(adder.close(vectors[0]), layout), sum_of(layout, *vectors))


KEYS: dict[int, PaillierDecryptionKey] = {}


def test_phe_reads_what_is_encrypted_here(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    layout = layout_of(scheme)
    vector = uniform(layout, 1)
    numbers = [int.from_bytes(one, "little") for one in scheme.load(key.public).encrypt(vector, layout)]
    plain = [key._private.raw_decrypt(number) for number in numbers]
    assert plain == scheme.slots(layout).pack(vector)


def test_ciphertexts_and_totals_are_random(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    layout = layout_of(scheme)
    vector, encryptor = uniform(layout, 1), scheme.load(key.public)
    uploads = [encryptor.encrypt(vector, layout) for _ in range(3)]
    assert len({one for upload in uploads for one in upload}) == 3 * len(uploads[0])
    totals = []
    for _ in range(2):
        adder = encryptor.adder(layout)
        adder.add(uploads[0])
        totals.append(adder.close(layout.group.zeros(layout.entries)))
    assert not set(totals[0]) & set(totals[1])
    assert not set(totals[0]) & set(uploads[0])


def test_what_is_no_ciphertext_is_refused(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    layout, modulus = layout_of(scheme), modulus_of(key)
    encryptor = scheme.load(key.public)
    good = encryptor.encrypt(uniform(layout, 1), layout)
    width = scheme.ciphertext_bytes
    bad = [
        b"",
        good[0][:-1],
        good[0] + b"\x00",
        bytes(width),
        (modulus**2).to_bytes(width, "little"),
        b"\xff" * width,
        modulus.to_bytes(width, "little"),
        (int(key._private.p) * 5).to_bytes(width, "little"),
    ]
    for one in bad:
        adder = encryptor.adder(layout)
        with pytest.raises(PeerMisbehaved, match="ciphertext"):
            adder.add([*good[:-1], one])
        with pytest.raises(PeerMisbehaved, match="ciphertext"):
            key.decrypt([*good[:-1], one], layout)
        adder.add(good)  # and nothing of the refused one is in the sum
        assert np.array_equal(key.decrypt(adder.close(layout.group.zeros(layout.entries)), layout), uniform(layout, 1))


def test_a_total_that_is_no_sum_of_slots_is_refused(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    layout, modulus = layout_of(scheme), modulus_of(key)
    beyond = phe.PaillierPublicKey(modulus).raw_encrypt(modulus - 1).to_bytes(scheme.ciphertext_bytes, "little")
    with pytest.raises(PeerMisbehaved, match="no sum of scores"):
        key.decrypt([beyond] * scheme.ciphertexts(layout), layout)


def test_vectors_of_another_layout_are_not_encrypted(scheme: PaillierScheme, key: PaillierDecryptionKey) -> None:
    layout = layout_of(scheme)
    for wrong in (uniform(layout, 1)[:-1], uniform(layout, 1).astype(np.uint64)):
        with pytest.raises(ValueError, match="is not a vector"):
            scheme.load(key.public).encrypt(wrong, layout)


def test_the_generator_is_asked_for_full_length(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = paillier_keys.rsa.generate_private_key

    def noted(exponent: int, bits: int) -> object:
        asked.append(bits)
        return real(exponent, bits)

    monkeypatch.setattr(paillier_keys.rsa, "generate_private_key", noted)
    draw_primes(SHORT_KEYS)
    assert set(asked) == {1024}

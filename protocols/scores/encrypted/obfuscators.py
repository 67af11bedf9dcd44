"""Obfuscators: the random factors of Paillier ciphertexts, from a table and ahead of time.

A ciphertext of m is (1 + m n) r^n mod n^2. With p = q = 3 mod 4 and gcd(p - 1, q - 1) = 2, and h = -y^2 mod n for a
random unit y, the powers (h^n)^a with a of half the bits of n take the place of r^n: Damgard, Jurik, Nielsen, IJIS
2010, under the assumption of Paillier and the one that such powers of h cannot be told from those with
longer exponents. Everybody who encrypts draws a y of its own: an h that the asker chose would be one more thing to
trust.

The table. The exponent is a row of digits of w bits, each drawn by itself, so it is uniform below 2^(w rows). Of every
digit and each of its values the table has the power of h^n: an obfuscator is one product per row and no squaring. The
width w is what makes table and obfuscators of the first vector cheapest together.

Misuse: an obfuscator belongs to one ciphertext. `take` gives each one once.
"""

import secrets
from collections import deque
from threading import Event, Thread
from typing import Any, Final

import numpy as np

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.spent import Spent

_MOST_TABLE_BYTES: Final = 1 << 26
_WIDEST: Final = 12


class Obfuscators:
    """Those under one modulus of `bits` bits. `gmpy2`: the module."""

    def __init__(self, gmpy2: Any, modulus: int, bits: int) -> None:
        self._gmpy2 = gmpy2
        self._modulus, self._bits = gmpy2.mpz(modulus), bits
        self._square = self._modulus * self._modulus
        self._rows: list[list[Any]] = []
        self._ready: deque[Any] = deque()
        self._thread: Thread | None = None
        self._enough = Event()
        self._problem: PeerMisbehaved | None = None
        self._ahead = Spent()

    def begin(self, count: int) -> None:
        """Compute in the background until so many are ready."""
        if self._thread is None:
            self._enough.clear()
            self._thread = Thread(target=self._fill, args=(count,), name="obfuscators", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until the background is done."""
        if self._thread is not None:
            self._thread.join()

    def take(self, count: int) -> list[Any]:
        """So many, none of which was taken before. What the background has not come to yet is computed here."""
        self._stop()
        if self._problem is not None:
            raise self._problem
        if not self._rows:
            self._make_table(count)
        taken = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        return taken + [self._one() for _ in range(count - len(taken))]

    def ahead(self) -> Spent:
        """What the background has taken since the last call. Nobody has waited for it: it has no time on the wall."""
        spent, self._ahead = Spent(0.0, self._ahead.cpu_seconds), Spent()
        return spent

    def _stop(self) -> None:
        if self._thread is not None:
            self._enough.set()
            self._thread.join()
            self._thread = None

    def _fill(self, count: int) -> None:
        with self._ahead.measure():
            try:
                if not self._rows:
                    self._make_table(count)
                while len(self._ready) < count and not self._enough.is_set():
                    self._ready.append(self._one())
            except PeerMisbehaved as problem:
                self._problem = problem  # for the thread that has need of them

    def _make_table(self, count: int) -> None:
        """rows[i][d] = (h^n)^(d 2^(w i)) mod n^2."""
        width, square = _width(count, self._bits), self._square
        power = self._gmpy2.powmod(self._draw_h(), self._modulus, square)
        rows = []
        for _ in range(_row_count(width, self._bits)):
            row = [self._gmpy2.mpz(1), power]
            while len(row) < 1 << width:
                row.append(row[-1] * power % square)
            rows.append(row)
            power = row[-1] * power % square
        self._rows = rows

    def _draw_h(self) -> Any:
        """-y^2 mod n for a random unit y."""
        y = self._gmpy2.mpz(secrets.randbelow(int(self._modulus) - 1) + 1)
        if self._gmpy2.gcd(y, self._modulus) != 1:
            raise PeerMisbehaved("a Paillier key with a factor that anybody can guess")
        return -y * y % self._modulus

    def _one(self) -> Any:
        rows, square = self._rows, self._square
        drawn = np.frombuffer(secrets.token_bytes(2 * len(rows)), dtype="<u2") % len(rows[0])  # a power of two
        factor = rows[0][int(drawn[0])]
        for row, digit in zip(rows[1:], drawn[1:].tolist(), strict=True):
            factor = factor * row[digit] % square
        return factor


def _row_count(width: int, bits: int) -> int:
    """Rows for an exponent of half the bits."""
    return -(-((bits + 1) // 2) // width)


def _width(count: int, bits: int) -> int:
    """The digit width with the fewest products for a table and `count` obfuscators."""

    def products(width: int) -> int:
        return _row_count(width, bits) * ((1 << width) + count)

    fitting = [
        width for width in range(1, _WIDEST + 1) if (_row_count(width, bits) << width) * bits // 4 <= _MOST_TABLE_BYTES
    ]
    return min(fitting, key=products)

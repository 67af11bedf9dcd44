"""Fields of requests and rosters, whoever has chosen them: checked once, at the edge."""

import base64
import binascii
import ipaddress
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from protocols.session.identities import LONGEST_NAME, IdentityError
from protocols.session.site_keys import certified, fingerprint
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import visible_line

_HEX: Final = re.compile("[0-9a-f]*")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_TIME_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_BETWEEN: Final = frozenset(" ._-&'(),")
_DIGITS: Final = frozenset("0123456789")
# Letters of Latin that are no signs of pronunciation, which look like others (as the script g, and a click like an l).
_LATIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzßæðøþđħłŋœŧəıɓɗƙƴɛɔ")
# Alphabets whose letters, or whole words, look like Latin ones, and which no organisation writes its name in today.
_MIMICS: Final = frozenset({"CHEROKEE", "LISU", "COPTIC", "DESERET", "OSAGE", "OLD", "GOTHIC", "CARIAN", "LYCIAN",
                            "LYDIAN", "ELBASAN", "CAUCASIAN", "VAI", "BAMUM", "MODIFIER", "WARANG"})  # fmt: skip
# Letters of Greek, Cyrillic and Armenian that most typefaces draw as Latin ones, and signs that people
# read for one another.
_ALIKE: Final = str.maketrans(
    "авсԁеғһіјкӏмноԛрѕтуүѵѡԝхґѓςαβγεζηικμνορτυχωϳօոսհցյզլı01",
    "abcdefhijkimhoqpstyyvwwxrrcabyeznikmvoptuxwjonuhgjqiioi",
)
_LABEL: Final = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_HOST: Final = 253
_FINGERPRINT_DIGITS: Final = 32
DEFAULT_PORT: Final = 443


def text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str):
        raise UserError(f"'{key}' must be a text" if key in values else f"'{key}' is missing")
    return value


def number(values: Mapping[str, Any], key: str, largest: int) -> int:
    value = values.get(key)
    if type(value) is not int or not 1 <= value <= largest:
        raise UserError(f"'{key}' must be a whole number from 1 to {largest}")
    return value


def octets(values: Mapping[str, Any], key: str, length: int) -> bytes:
    """Hex digits in lower case: one spelling for each key, so that equal keys are equal texts."""
    value = text(values, key)
    if len(value) != 2 * length or not _HEX.fullmatch(value):
        raise UserError(f"'{key}' must be {2 * length} hex digits in lower case")
    return bytes.fromhex(value)


def certificate(values: Mapping[str, Any], key: str, identity: bytes) -> bytes:
    """The certificate of exactly this identity."""
    try:
        found = base64.b64decode(text(values, key), validate=True)
        if certified(found) != identity:
            raise UserError(f"'{key}' is of another identity")
    except (binascii.Error, ValueError):
        raise UserError(f"'{key}' must be base64") from None
    except IdentityError as problem:
        raise UserError(f"'{key}': {problem}") from None
    return found


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def time(values: Mapping[str, Any], key: str) -> datetime:
    value = text(values, key)
    try:
        if not _TIME_TEXT.fullmatch(value):
            raise ValueError
        return datetime.strptime(value, _TIME).replace(tzinfo=UTC)
    except ValueError:
        raise UserError(f"'{key}' must be a time such as 2026-01-31T12:00:00Z") from None


def time_text(moment: datetime) -> str:
    """In whole seconds of UTC."""
    return moment.astimezone(UTC).strftime(_TIME)


def only(values: Mapping[str, Any], *known: str) -> None:
    """Refuse what this version does not know: a rule that is silently ignored is no rule."""
    for key in values:
        if key not in known:
            raise UserError(f"unknown key {key[:40]!a}")


def name(value: str) -> str:
    """A site's name: letters of one script and digits, with blanks and a few signs between them.

    It is shown beside fingerprints and may become part of a file's name. So nothing in it acts on a terminal, is a
    path, cannot be seen, or looks like another name by mixing alphabets. Names of two whole alphabets that look alike
    are told apart nowhere: `folded` takes them for the same.
    """
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in value if letter.isalpha()}
    fits = (
        0 < len(value) <= LONGEST_NAME
        and value == unicodedata.normalize("NFKC", value)
        and value == visible_line(value)  # some letters have no width (Hangul fillers)
        and all(letter.isalpha() or letter in _DIGITS or letter in _BETWEEN for letter in value)
        and value[0].isalnum()
        and (value[-1].isalnum() or value[-1] == ")")
        and ".." not in value
        and "  " not in value
        and len(scripts) <= 1
        and not scripts & _MIMICS
        and ("LATIN" not in scripts or set(_letters(value)) <= _LATIN)
    )
    if not fits:
        raise UserError(
            f"a name has up to {LONGEST_NAME} letters of one script and digits, with single blanks or . _ - & ' ( ) , "
            "between them"
        )
    return value


def _letters(value: str) -> str:
    """Without case and accents."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", value.casefold()) if letter.isalpha())


def folded(value: str) -> str:
    """The same for names that people would take for one another: by case, signs, accents, or like letters."""
    plain = unicodedata.normalize("NFKD", value.casefold())
    return "".join(letter for letter in plain if letter.isalnum()).translate(_ALIKE).replace("l", "i")


def address(value: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[IPv6]:port`; nothing of a path, a user or a scheme."""
    host, colon, port = value.rpartition(":")
    if not colon or (value.startswith("[") and value.endswith("]")):
        host, port = value, str(DEFAULT_PORT)
    if len(host) > _LONGEST_HOST or not (_HOST.fullmatch(host) or _is_ipv6(host)):
        raise UserError(f"address {value[:80]!a}: must be host:port, without https:// and without a path")
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise UserError(f"address {value[:80]!a}: the port must be a number from 1 to 65535")
    return host.lower(), int(port)


def _is_ipv6(host: str) -> bool:
    if not (host.startswith("[") and host.endswith("]")) or "%" in host:
        return False
    try:
        return bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


def digits_of(value: str) -> str:
    """A fingerprint as people type it, in hex digits alone; `UserError` for what is none, or less than a whole one."""
    digits = re.sub(r"[\s:-]", "", value).lower()
    if len(digits) != _FINGERPRINT_DIGITS or not _HEX.fullmatch(digits):
        raise UserError("a fingerprint has eight groups of four hex digits, such as 'ab12 cd34 ...'; give all of them")
    return digits


def same_fingerprint(identity: bytes, value: str) -> bool:
    return fingerprint(identity).replace(" ", "") == digits_of(value)

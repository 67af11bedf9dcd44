"""Answers to requests for the status page: which are refused, and the headers of all.

A page of another site must not read this one through a browser on this machine. It cannot read answers of another
origin; and a name that it has moved to this machine's address (DNS rebinding) stands in `Host`, where only names and
addresses of this machine are taken.
"""

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOTHING: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_TEXT: Final = "text/plain; charset=utf-8"
_HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer over HTTP."""

    status: int
    body: bytes
    kind: str = _TEXT
    policy: str = _NOTHING
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        told = {"Content-Type": self.kind, "Content-Security-Policy": self.policy}
        return {**_ALWAYS, **told, **self.more}


def refusal(status: int, why: str) -> Answer:
    more = {"Allow": "GET"} if status == 405 else {}
    return Answer(status, f"{why}\n".encode(), more=more)


def live(page: str, nonce: str) -> Answer:
    """The page itself: one style and one script, both by number, and requests to this address only."""
    # Bars have their widths in attributes, which have no number; all text in them is escaped.
    style = f"style-src-elem 'nonce-{nonce}'; style-src-attr 'unsafe-inline'"
    policy = f"{_NOTHING}; {style}; script-src 'nonce-{nonce}'; connect-src 'self'"
    return Answer(200, page.encode(), _HTML, policy)


def figures(text: str) -> Answer:
    return Answer(200, text.encode(), "application/json; charset=utf-8")


def finished(page: bytes) -> Answer:
    """A page of the run's folder: pictures and styles inside it, and no script whatever is in it."""
    return Answer(200, page, _HTML, f"{_NOTHING}; style-src 'unsafe-inline'; img-src data:; sandbox")


def new_nonce() -> str:
    return secrets.token_urlsafe(16)


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def host_is_ours(host: str | None, address: str) -> bool:
    """Whether a request's `Host` names this machine, by any port: a tunnel may have another one.

    On loopback: its names. Elsewhere also the address served, or any address in numbers if all are served.
    """
    name = _without_port(host or "")
    if name == "localhost" or is_loopback(name):
        return True
    if is_loopback(address):
        return False
    try:
        asked, served = ipaddress.ip_address(name), ipaddress.ip_address(address)
    except ValueError:
        return False
    return served.is_unspecified or asked == served


def _without_port(host: str) -> str:
    """Empty if it is no host with or without a port."""
    if host.startswith("["):
        name, closed, port = host[1:].partition("]")
        sound = bool(closed) and (not port or (port[0] == ":" and port[1:].isascii() and port[1:].isdigit()))
        return name if sound and ":" in name else ""
    name, colon, port = host.partition(":")
    sound = not colon or (port.isascii() and port.isdigit())
    return name.lower() if sound else ""

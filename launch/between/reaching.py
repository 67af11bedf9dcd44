"""Whether a site reaches its server: name, TCP, proxy of the environment, TLS with both certificates, one HTTP answer.

Threat model: whoever answers may be anybody until the TLS handshake has shown the pinned identity, and a proxy is
nobody's friend. So what is read is bounded in time and size, and nothing of it is shown.
"""

import base64
import os
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from launch.checkup.finding import Finding
from secure_kg.provisioning.fields import address as parsed_address
from secure_kg.provisioning.roster import Roster

_SECONDS: Final = 10.0
_LARGEST_HEAD: Final = 1 << 14
_NOBODY: Final = "start the server first, or ask whoever runs it; then check again"
_ABOUT: Final = "server"
_SET_CLOCK: Final = "set the clock (timedatectl set-ntp true), here or at the server"
_ANOTHER: Final = (
    "a proxy that looks into TLS, or another machine: have this address exempted from inspection, and check it "
    "with the coordinator"
)
_CUT: Final = "is it the server's port? a firewall may cut TLS 1.3; ask whoever runs the server, or the network"
_REFUSED: Final = (
    "it may not know this site, because another one has its place or the server an older federation.toml: ask the "
    "coordinator. Or this clock is ahead by more than an hour"
)
_NOT_TAKEN: Final = (
    "ask the coordinator whether this member was revoked, and for the newest federation.toml; if it was not: the "
    "server may have an older one, in which this site is no member, or a clock is wrong"
)
_CORRECT: Final = "correct HTTPS_PROXY, or name this server in NO_PROXY"
_FORBIDDEN: Final = 403
"""How the server answers a certificate that lets nobody in (`protocols.transport.https.reception`)."""
_DATES: Final = (9, 10)
"""OpenSSL's codes of a certificate that is not valid yet, or has expired."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What was found on the way to the server."""

    findings: tuple[Finding, ...]
    date: datetime | None = None
    """The server's clock, if it answered."""


class _Blocked(Exception):
    """The way ends here."""

    def __init__(self, found: str, next_step: str, *, note: bool = False, date: datetime | None = None) -> None:
        super().__init__(found)
        self.date = date
        self.finding = Finding(_ABOUT, "note" if note else "problem", found, next_step)


def reach(roster: Roster, tls: Callable[[], ssl.SSLContext], seconds: float = _SECONDS) -> Reached:
    """Go the way that joining goes, as far as it leads. `tls`: the site's context (`client_tls`)."""
    host, port = parsed_address(roster.address)
    host = host.strip("[]")
    found: list[Finding] = []
    try:
        proxy = _proxy_of(host, port)
        if proxy is not None:
            found.append(Finding("proxy", "ok", f"{proxy.hostname}:{proxy.port or 80}, from the environment"))
        with closing(_connected(host, port, proxy, seconds)) as plain:
            secured = _handshaken(plain, tls(), host)
            with closing(secured):
                date = _answer(secured, roster.address, seconds)
    except _Blocked as blocked:
        return Reached((*found, blocked.finding), blocked.date)
    found.append(Finding(_ABOUT, "ok", f"{roster.address} answers with TLS 1.3 and the pinned identity"))
    return Reached(tuple(found), date)


def _proxy_of(host: str, port: int) -> SplitResult | None:
    """The proxy that the environment names for this server: HTTPS_PROXY, ALL_PROXY and NO_PROXY in either case."""
    known = urllib.request.getproxies_environment()
    named = known.get("https") or known.get("all")
    if not named or urllib.request.proxy_bypass(f"{host}:{port}"):
        return None
    try:
        proxy = urlsplit(named if "//" in named else f"http://{named}")
        usable = proxy.scheme == "http" and bool(proxy.hostname) and proxy.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _Blocked("the proxy of the environment is no http://host:port", _CORRECT)
    return proxy


def _connected(host: str, port: int, proxy: SplitResult | None, seconds: float) -> socket.socket:
    """A connection over TCP, through the proxy if there is one."""
    first = (host, port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
    where = f"{first[0]}:{first[1]}" if proxy is None else f"the proxy {first[0]}:{first[1]}"
    try:
        plain = socket.create_connection(first, timeout=seconds)
    except socket.gaierror:
        raise _Blocked(f"{where}: no such name in the DNS", "check the address with the coordinator") from None
    except ConnectionRefusedError:
        raise _Blocked(f"{where}: nobody listens there (yet)", _NOBODY, note=proxy is None) from None
    except TimeoutError:
        step = (
            f"ask your network's administrators to allow connections outwards to {where}, or name a proxy (HTTPS_PROXY)"
        )
        raise _Blocked(f"{where}: no answer within {seconds:.0f} s", step) from None
    except (OSError, UnicodeError) as problem:
        raise _Blocked(f"{where}: {getattr(problem, 'strerror', None) or 'no address'}", "check the network") from None
    if proxy is not None:
        try:
            _tunnelled(plain, host, port, proxy, seconds)
            plain.settimeout(seconds)
        except BaseException:
            plain.close()
            raise
    return plain


def _tunnelled(plain: socket.socket, host: str, port: int, proxy: SplitResult, seconds: float) -> None:
    """HTTP CONNECT. The proxy reads the address, and nothing of what follows."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(login).decode()}")
    try:
        plain.sendall("\r\n".join([*lines, "", ""]).encode())
        status = _status(_head(plain, seconds))
    except OSError:
        status = None
    if status != 200:
        steps = {407: "give its user and password in HTTPS_PROXY", 403: f"ask its administrators to allow {target}"}
        told = "an answer that is no HTTP" if status is None else f"HTTP {status}"
        raise _Blocked(f"the proxy does not connect to {target}: {told}",
                       steps.get(status or 0, "ask its administrators, or name this server in NO_PROXY"))  # fmt: skip


def _handshaken(plain: socket.socket, tls: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as problem:
        if getattr(problem, "verify_code", 0) in _DATES:
            raise _Blocked("the server's certificate is not valid at the time of this clock", _SET_CLOCK) from None
        raise _Blocked("whoever answers there is not the server of this federation", _ANOTHER) from None
    except ssl.SSLError as problem:
        told = (problem.reason or "").replace("_", " ").lower() or "unknown reason"
        raise _Blocked(f"the TLS handshake failed ({told})", "is it the server's port? ask whoever runs it") from None
    except (OSError, ValueError):  # ValueError: a name that no certificate could have
        raise _Blocked("the connection ended during the TLS handshake", _CUT) from None


def _answer(secured: ssl.SSLSocket, address: str, seconds: float) -> datetime | None:
    """The server's clock, from its answer to a request that it need not know. In TLS 1.3 a server refuses a client's
    certificate only now: by TLS, if it has never trusted the identity, or by HTTP, if the newest roster does not."""
    try:
        secured.sendall(f"GET /secure-kg-check HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        head = _head(secured, seconds)
    except ssl.SSLError:
        raise _Blocked("the server refuses this site's certificate", _REFUSED) from None
    except TimeoutError:
        raise _Blocked("the server does not answer a request", _NOBODY) from None
    except OSError:
        head = b""
    status = _status(head)
    if status == _FORBIDDEN:
        raise _Blocked("the server does not take this site's certificate", _NOT_TAKEN, date=_date(head))
    if status is None:
        raise _Blocked("the server ends the connection of this site without an answer", _REFUSED)
    return _date(head)


def _head(connection: socket.socket, seconds: float) -> bytes:
    """The head of an HTTP answer, of bounded size; less if the connection ends before. `TimeoutError` unless all of it
    comes within `seconds`: one byte at a time, each in time, would take days."""
    content, end = b"", time.monotonic() + seconds
    while b"\r\n\r\n" not in content and len(content) < _LARGEST_HEAD:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        # One byte of a tunnel's first TLS record must not be read with the proxy's head, and heads are short.
        piece = connection.recv(1)
        if not piece:
            break
        content += piece
    return content


def _status(head: bytes) -> int | None:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    known = words[0] in (b"HTTP/1.1", b"HTTP/1.0") and len(words) > 1 and words[1].isdigit() and len(words[1]) == 3
    return int(words[1]) if known and b"\r\n\r\n" in head else None


def _date(head: bytes) -> datetime | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"date":
            try:
                return parsedate_to_datetime(value.strip().decode("ascii")).astimezone(UTC)
            except (ValueError, UnicodeDecodeError, OverflowError):
                return None
    return None


def listening(roster: Roster) -> Iterator[Finding]:
    """For the server's own machine: whether its port is free."""
    _, port = parsed_address(roster.address)
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
    except PermissionError:
        step = f"allow it (sysctl net.ipv4.ip_unprivileged_port_start={port}), or take a port above 1023"
        yield Finding("port", "problem", f"port {port} cannot be opened by user {os.getuid()}", step)
    except OSError as problem:
        yield Finding("port", "note", f"port {port}: {problem.strerror}", "end what listens there, unless it is the "
                      "server already")  # fmt: skip
    else:
        yield Finding("port", "ok", f"port {port} is free; sites need a way to {roster.address}")

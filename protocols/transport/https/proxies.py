"""The way to the server: straight, or through an HTTP proxy by CONNECT, as the usual environment variables say."""

import base64
import ipaddress
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from protocols.transport.https.refusals import Hopeless

ENVIRONMENT: Final = "environment"
"""Take the proxy from https_proxy, HTTPS_PROXY, all_proxy or ALL_PROXY, unless no_proxy names the server."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. Its password appears in no text."""

    url: str
    headers: Mapping[str, str] = field(repr=False)

    @property
    def place(self) -> str:
        return self.url.partition("//")[2]


def proxy_for(server: str, choice: str | None) -> Proxy | None:
    """`choice`: ENVIRONMENT, the URL of a proxy, or None for none. `Hopeless` if it cannot be used."""
    if choice is None:
        return None
    found: str | None = choice
    if choice == ENVIRONMENT:
        proxies = urllib.request.getproxies_environment()
        if _passed_by(server, proxies.get("no", "")):
            return None
        found = proxies.get("https") or proxies.get("all")
    return _parsed(found) if found else None


def _passed_by(server: str, exceptions: str) -> bool:
    """Whether no_proxy names the server: `*`, a host, a domain with all below it, an address or a network."""
    parts = urllib.parse.urlsplit(server)
    host = (parts.hostname or "").lower()
    for entry in (one.strip().lower() for one in exceptions.split(",")):
        name = entry.lstrip(".").removesuffix(f":{parts.port or 443}")
        if entry == "*" or (name and (host == name or host.endswith("." + name))):
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False


def _parsed(text: str) -> Proxy:
    # What is wrong is said without the text: a password may be in it.
    try:
        parts = urllib.parse.urlsplit(text if "//" in text else f"http://{text}")
        port, host = parts.port or 80, parts.hostname
    except ValueError:
        raise Hopeless("the proxy's address is none") from None
    if parts.scheme != "http":
        raise Hopeless(f"a proxy of the kind {_word(parts.scheme)} cannot be used: it must be an HTTP proxy (http://)")
    if not host:
        raise Hopeless("the proxy's address names no host")
    headers = dict[str, str]()
    if parts.username is not None:
        pair = ":".join(urllib.parse.unquote(one or "") for one in (parts.username, parts.password))
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", headers)


def _word(scheme: str) -> str:
    return scheme if scheme.isalnum() and len(scheme) <= 10 else "given"

"""Ways to the server: CONNECT proxies, long polls where no WebSocket gets through, and what is refused on them."""

import asyncio
import ssl
from pathlib import Path

import pytest

import secure_kg.provisioning.tls as tls_module
from protocols.foundation.errors import LinkRefused
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.proxies import ENVIRONMENT, proxy_for
from protocols.transport.https.refusals import Hopeless
from tests.support.connect_proxies import ConnectProxy, Middlebox
from tests.support.in_threads import soon
from tests.support.links import FEDERATION, QUICK, Links, Provisioned
from tests.support.waiting import wait_until

ONE = PartyId(1)
LARGE = bytes(range(256)) * 4000
VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "http_proxy")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def exchange(made: Links, client: HttpsClientTransport) -> None:
    client.send(SERVER, LARGE)
    made.wait(1)
    server = made.server.transport()
    assert server.receive([ONE], soon()) == (ONE, LARGE)
    server.send(ONE, LARGE[1:])
    assert client.receive([SERVER], soon()) == (SERVER, LARGE[1:])
    client.flush(soon())
    server.flush(soon())
    client.close()


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("mode", ["websocket", "poll"])
def test_a_proxy_of_the_environment(linked: Links, monkeypatch: pytest.MonkeyPatch, variable: str, mode: str) -> None:
    with ConnectProxy("Basic bWU6czNjcmV0") as proxy:
        monkeypatch.setenv(variable, f"http://me:s3cret@127.0.0.1:{proxy.port}")
        exchange(linked, linked.client(1, proxy=ENVIRONMENT, mode=mode))
        assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{linked.port}"}


def test_no_proxy_names_servers_that_are_reached_straight(linked: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    with ConnectProxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "elsewhere.example,127.0.0.0/8")
        exchange(linked, linked.client(1, proxy=ENVIRONMENT))
        assert proxy.asked == []


@pytest.mark.parametrize(
    ("exceptions", "passed_by"),
    [
        ("*", True), ("kg.example.org", True), (".example.org", True), ("example.org", True), ("org:443", True),
        ("other.org, EXAMPLE.ORG", True), ("", False), ("ample.org", False), ("example.org:8443", False),
        (",.,", False),
    ],
)  # fmt: skip
def test_what_no_proxy_means(monkeypatch: pytest.MonkeyPatch, exceptions: str, passed_by: bool) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", exceptions)
    found = proxy_for("https://kg.example.org", ENVIRONMENT)
    assert (found is None) == passed_by
    assert found is None or found.url == "http://proxy.example:3128"


def test_a_password_is_in_no_text_of_a_proxy(linked: Links) -> None:
    found = proxy_for("https://x", "http://me:s3cret@[::1]:3128")
    assert found is not None
    assert "s3cret" not in repr(found) + str(found) + found.place
    for hopeless in ("socks5://me:s3cret@x:1", "https://me:s3cret@x", "http://me:s3cret@x:99999", "http://me:s3cret@"):
        with pytest.raises(Hopeless) as refused:
            proxy_for("https://x", hopeless)
        assert "s3cret" not in str(refused.value)
    with ConnectProxy("Basic other") as proxy:
        linked.client(1, proxy=f"http://me:s3cret@127.0.0.1:{proxy.port}")
        wait_until(lambda: any("refuses: 407" in line for line in linked.lines), 10)
        assert not any("s3cret" in line for line in linked.lines)


@pytest.mark.parametrize("status", ["403 Forbidden", "502 Bad Gateway"])
def test_a_proxy_that_refuses_is_told_in_one_line(linked: Links, status: str) -> None:
    with ConnectProxy(status=status) as proxy:
        linked.client(1, proxy=f"http://127.0.0.1:{proxy.port}")
        line = f"the proxy at 127.0.0.1:{proxy.port} refuses: {status[:3]}; trying again"
        wait_until(lambda: line in linked.lines, 10)
        proxy.status = "200 OK"
        linked.wait(1)
    linked.client(2, proxy="http://127.0.0.1:9")
    wait_until(lambda: any("cannot reach the proxy at 127.0.0.1:9" in line for line in linked.lines), 10)


def test_the_pinned_identity_is_checked_through_a_proxy_too(
    linked: Links, provisioned: Provisioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL accepts the chain here; what refuses is the check at the end of the handshake."""
    checked: list[object] = []
    real = tls_module._check_peer
    monkeypatch.setattr(tls_module, "_check_peer", lambda context, leaf: (checked.append(leaf), real(context, leaf)))
    with ConnectProxy() as proxy:
        for way in (None, f"http://127.0.0.1:{proxy.port}"):
            tls = provisioned.client_tls(1)
            assert isinstance(tls, tls_module.PinnedContext)
            tls.identity = bytes(32)
            for mode in ("websocket", "poll"):
                checked.clear()
                client = linked.client(1, tls=tls, proxy=way, mode=mode)
                with pytest.raises(LinkRefused, match=r"TLS with the server failed.*the server has shown"):
                    client.receive([SERVER], soon())
                assert checked
        checked.clear()
        exchange(linked, linked.client(1, proxy=f"http://127.0.0.1:{proxy.port}"))
        assert checked
    assert linked.server.linked() <= {ONE}


def test_a_proxy_that_leads_elsewhere_is_refused(linked: Links, tmp_path: Path) -> None:
    other = Provisioned(tmp_path, sites=1)
    inside = other.server_tls()
    inside.verify_mode = ssl.CERT_NONE
    with (
        Middlebox(inside, linked.federation.client_tls(1), linked.port) as elsewhere,
        ConnectProxy(to=elsewhere.port) as proxy,
    ):
        client = linked.client(1, proxy=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(LinkRefused, match="TLS with the server failed through the proxy"):
            client.receive([SERVER], soon())
        client = linked.client(1, url=f"https://127.0.0.1:{elsewhere.port}", mode="poll")
        with pytest.raises(LinkRefused, match="TLS with the server failed"):
            client.receive([SERVER], soon())
    assert linked.server.linked() == frozenset()


def middlebox(made: Links) -> Middlebox:
    """With the server's own key, and with client 1's: nobody else could end this TLS and be let in."""
    return Middlebox(made.federation.server_tls(), made.federation.client_tls(1), made.port)


def test_long_polls_where_upgrades_are_stripped(linked: Links) -> None:
    with middlebox(linked) as box:
        exchange(linked, linked.client(1, url=f"https://127.0.0.1:{box.port}"))
        assert box.stripped == 1


def test_a_client_that_wants_websockets_only_says_why_it_has_none(linked: Links) -> None:
    with middlebox(linked) as box:
        linked.client(1, url=f"https://127.0.0.1:{box.port}", mode="websocket")
        wait_until(lambda: any("nobody lets a WebSocket through" in line for line in linked.lines), 10)
        assert linked.server.waiting() == frozenset()


@pytest.mark.parametrize("mode", ["websocket", "poll"])
def test_a_client_goes_nowhere_else(provisioned: Provisioned, linked: Links, mode: str) -> None:
    """Answers with a redirection are refused: nobody sends a client to an address of its own network."""
    followed = list[str]()

    class Redirecting(ConnectProxy):
        def tls(self) -> ssl.SSLContext:
            return provisioned.server_tls()

        async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:{inner.port}/\r\n\r\n".encode())
            await writer.drain()

    with ConnectProxy() as inner, Redirecting() as server:
        linked.client(1, url=f"https://127.0.0.1:{server.port}", mode=mode)
        wait_until(lambda: any("the connection to the server broke off" in line for line in linked.lines), 10)
        followed += inner.asked
    assert followed == []


def test_addresses_and_modes_that_cannot_be_used(provisioned: Provisioned) -> None:
    tls = provisioned.client_tls(1)
    for wrong in ("http://127.0.0.1", "https://127.0.0.1/elsewhere", "https://me:s3cret@127.0.0.1", "https://"):
        with pytest.raises(ValueError, match="https://HOST or https://HOST:PORT"):
            HttpsClientTransport(wrong, tls, ONE, FEDERATION, limits=QUICK)
    with pytest.raises(ValueError, match="32 bytes"):
        HttpsClientTransport("https://127.0.0.1", tls, ONE, FEDERATION[1:], limits=QUICK)
    with pytest.raises(ValueError, match="auto, websocket, poll"):
        HttpsClientTransport("https://127.0.0.1", tls, ONE, FEDERATION, mode="carrier pigeon")  # type: ignore[typeddict-item]
    client = HttpsClientTransport("https://127.0.0.1", tls, ONE, FEDERATION, proxy="socks5://x", limits=QUICK)
    with pytest.raises(LinkRefused, match="must be an HTTP proxy"):
        client.receive([SERVER], soon())
    client.close()

"""One attempt of a client to reach the server: TLS, perhaps through a proxy, then a WebSocket or a long poll."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

import aiohttp

from protocols.transport.https import pieces, polling
from protocols.transport.https.channels import PATH, Channel, ChannelClosed, WebSocketChannel
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.proxies import Proxy
from protocols.transport.https.refusals import Hopeless, NoConnection, NoUpgrade, TurnedAway

Mode: TypeAlias = Literal["auto", "websocket", "poll"]
MODES: Final[tuple[Mode, ...]] = ("auto", "websocket", "poll")
_LARGEST_HEADER: Final = 4096
_ASKED_FOR_A_PASSWORD: Final = 407


class Dialler:
    """On the client's loop. `server`: `https://host:port`."""

    def __init__(self, server: str, tls: ssl.SSLContext, proxy: Proxy | None, mode: Mode, limits: LinkLimits) -> None:
        self._server, self._proxy, self._mode, self._limits = server, proxy, mode, limits
        self._polls = mode == "poll"
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def dial(self, hello: bytes) -> Channel:
        """An open channel on which the greeting was sent. `NoConnection` or `Hopeless` in one line."""
        session = self._opened()
        with _in_one_line(self._proxy):
            async with asyncio.timeout(self._limits.handshake_seconds):
                if not self._polls:
                    try:
                        return await self._web_socket(session, hello)
                    except NoUpgrade:
                        if self._mode != "auto":
                            raise
                        self._polls = True
                poster = polling.Poster(session, self._proxy.headers if self._proxy is not None else None)
                answered, name = await poster.post(self._server + PATH, [hello])
                return polling.PolledServer(poster, polling.channel_url(self._server, name), answered)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _web_socket(self, session: aiohttp.ClientSession, hello: bytes) -> Channel:
        try:
            socket = await session.ws_connect(
                self._server + PATH,
                compress=0,
                max_msg_size=pieces.LARGEST_PIECE + 1,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                proxy_headers=self._proxy.headers if self._proxy is not None else None,
            )
        except aiohttp.WSServerHandshakeError:
            raise NoUpgrade("nobody lets a WebSocket through on the way to the server") from None
        channel = WebSocketChannel(socket)
        await channel.send(hello)
        return channel

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls, limit=8, use_dns_cache=False),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                proxy=self._proxy.url if self._proxy is not None else None,
                timeout=aiohttp.ClientTimeout(total=self._limits.silence_seconds),
                max_line_size=_LARGEST_HEADER,
                max_field_size=_LARGEST_HEADER,
                middlewares=(_no_redirects,),
            )
        return self._session


async def _no_redirects(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A server must not send its clients to addresses of their own networks."""
    answer = await handler(request)
    if 300 <= answer.status < 400:
        answer.close()
        raise aiohttp.ClientPayloadError("redirected")
    return answer


@contextmanager
def _in_one_line(proxy: Proxy | None) -> Iterator[None]:
    way = f" through the proxy at {proxy.place}" if proxy is not None else ""
    try:
        yield
    except NoConnection:
        raise
    except aiohttp.ClientHttpProxyError as problem:
        asks = " (it asks for a user name and password)" if problem.status == _ASKED_FOR_A_PASSWORD else ""
        raise NoConnection(f"the proxy at {proxy.place if proxy else '?'} refuses: {problem.status}{asks}") from None
    except aiohttp.ClientProxyConnectionError as problem:
        raise NoConnection(f"cannot reach the proxy at {proxy.place if proxy else '?'}: {_system(problem)}") from None
    except (aiohttp.ClientSSLError, ssl.SSLError) as problem:
        raise Hopeless(f"TLS with the server failed{way}: {_tls(problem)}") from None
    except aiohttp.ClientConnectorError as problem:
        raise NoConnection(f"cannot reach the server{way}: {_system(problem)}") from None
    except TimeoutError:
        raise NoConnection(f"the server does not answer{way}") from None
    except ChannelClosed:  # a WebSocket that was opened, and broke before the greeting was sent
        raise NoConnection(f"the connection to the server broke off{way}") from None
    except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as problem:
        alert = _alert(problem)
        if alert is not None:
            raise Hopeless(f"the server refuses this site's certificate{way}: {alert}") from None
        if isinstance(problem, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
            why = "it may not know this site's certificate; ask the coordinator"
            raise TurnedAway(f"the server hangs up{way}: {why}") from None
        raise NoConnection(f"the connection to the server broke off{way}") from None


def _system(problem: aiohttp.ClientConnectorError) -> str:
    return problem.os_error.strerror or "no connection"


def _tls(problem: BaseException) -> str:
    inner = _ssl_error(problem)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return getattr(inner, "verify_message", "") or str(inner.args[-1])
    return (inner.reason or "failed").replace("_", " ").lower() if inner is not None else "failed"


def _alert(problem: BaseException) -> str | None:
    """The server's alert: in TLS 1.3 it refuses a certificate when the client has done its part already."""
    inner = _ssl_error(problem)
    if inner is None or "ALERT" not in (inner.reason or ""):
        return None
    return (inner.reason or "").replace("_", " ").lower()


def _ssl_error(problem: BaseException | None) -> ssl.SSLError | None:
    for _ in range(8):
        if problem is None or isinstance(problem, ssl.SSLError):
            return problem
        inner = getattr(problem, "certificate_error", None) or getattr(problem, "os_error", None)
        problem = inner or problem.__cause__ or problem.__context__
    return None

"""The JSON objects that clients publish under their URLs: metadata documents and key sets, in memory for some minutes.

Anybody can be a client, so a URL may be an attacker's. Each step of a fetch has one rule:

    1. URL          https on port 443, with a host name                    `URL`
    2. addresses    the host is resolved once; every address is public     `_public_addresses`
    3. connection   to one of these addresses, also if the owner of the    `_connect`
                    host has changed its addresses by now
    4. response     a small JSON object; a redirect is an error            `https.exchange`

Without these rules an attacker could make this server call private networks (server-side request forgery). A fetch is
charged by its seconds, to the caller that causes it and to this container. So neither one caller nor many of them can
keep a container waiting for silent sites.
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mcp_functions.aws.connection import Connection, Deadline, encrypt, tls_context
from mcp_functions.oauth import addresses, https
from mcp_functions.oauth.caller_budgets import FetchBudgets
from mcp_functions.oauth.copies import Copies
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.https import NoAnswer, WrongAnswer
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

PORT = 443
MAX_URL_CHARS = 512
# "(?x)" lets the pattern have spaces and comments.
URL = rf"""(?x)
    https://
    (?P<host> (?: [a-z0-9-]+ \. )+ [a-z] [a-z0-9-]* )       # the last label of an IP address begins with no letter
    (?: :{PORT} )?
    (?P<target> / [A-Za-z0-9._~:/?@!$&'()*+,;=%-]* )        # RFC 3986, without a fragment ("#")
"""
FETCH_SECONDS = 3.0  # the time limit for name, connection, handshake and response together
MAX_BYTES = 16 * 1024  # the largest document
FRESH_SECONDS = 300  # how long a document is used without another fetch
UNREADABLE = "the client's URL leads to no public site, or to no small JSON object"


def _resolve_host(host: str) -> list[str]:
    """Return every address of a host, or raise an OSError."""
    answers = socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_rest, address in answers]


def _connect_to(address: str, seconds: float) -> socket.socket:
    return socket.create_connection((address, PORT), timeout=seconds)


class Network(NamedTuple):
    """The functions of the network that a fetch calls; tests replace them."""

    resolve: Callable[[str], Sequence[str]] = _resolve_host  # host -> addresses
    connect: Callable[[str, float], socket.socket] = _connect_to  # address, seconds -> connection
    tls: Callable[[], SSLContext] = tls_context  # the trusted certificates


class Gone(Exception):
    """The site says that the URL has no document: 404 or 410."""


class Documents:
    """Fetches documents from URLs that strangers chose, and keeps copies."""

    def __init__(self, now: Callable[[], float], network: Network | None = None) -> None:
        """Start without copies; tests replace the network."""
        self._budgets = FetchBudgets(now, FETCH_SECONDS)
        self._network = network or Network()
        self._copies = Copies(now, FRESH_SECONDS)

    def get(self, url: str, caller_id: str, *, again: bool = False) -> dict[str, Any]:
        """Return the JSON object at a URL; for `again`, see `Copies.get`."""

        def read(url: str) -> dict[str, Any]:
            try:
                with self._budgets.charged(caller_id):
                    return fetch(url, self._network)
            except Gone:
                raise OAuthError(code="invalid_client", description="the document of the client is gone") from None
            except WrongAnswer:
                raise OAuthError(code="invalid_client_metadata", description=UNREADABLE) from None
            except NoAnswer:
                raise TemporarilyUnavailable(reason="client_document:unavailable") from None

        return self._copies.get(url, read, again=again)


def may_be_fetched(url: str) -> bool:
    """Check whether a URL may be fetched; its host is not resolved yet."""
    return _match_url(url) is not None


def fetch(url: str, network: Network) -> dict[str, Any]:
    """Fetch a JSON object.

    Raises:
        Gone: the site has no document at this URL.
        NoAnswer: the site does not answer now.
        WrongAnswer: the URL or its host is not allowed, or the response is not a small JSON object.
    """
    allowed = _match_url(url)
    if allowed is None:
        raise WrongAnswer
    deadline = Deadline(FETCH_SECONDS)
    public = _public_addresses(allowed["host"], network, deadline)
    connection = _connect(allowed["host"], public, network, deadline)
    response = https.exchange(connection, allowed["target"], MAX_BYTES)
    if response.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        raise Gone
    if https.may_succeed_later(response.status):
        raise NoAnswer
    if response.status != HTTPStatus.OK:  # also a redirect: nothing has checked where it leads
        raise WrongAnswer
    return https.read_json(response)


def _match_url(url: str) -> re.Match[str] | None:
    """Match an allowed URL: "https://host.example/client?v=1" has the host "host.example", the target "/client?v=1".

    A server resolves "." and "..": it reads "/good/../evil" as "/evil". A document would have many URLs, and a user
    could be shown a URL that looks like another document's.
    """
    matched = re.fullmatch(URL, url)
    if matched is None or len(url) > MAX_URL_CHARS:
        return None
    path = matched["target"].partition("?")[0]
    has_dot_segment = any(unquote(segment) in {".", ".."} for segment in path.split("/"))
    return None if has_dot_segment else matched


def _public_addresses(host: str, network: Network, deadline: Deadline) -> Sequence[str]:
    """Resolve a host. One address that is not public is enough to refuse the host."""
    resolver = ThreadPoolExecutor(max_workers=1)  # the system's resolver has no time limit
    try:
        resolved = resolver.submit(network.resolve, host).result(deadline.remaining())
    except (OSError, UnicodeError):  # no address, or none in time; or the name is too long
        raise NoAnswer from None
    finally:
        resolver.shutdown(wait=False)
    if not resolved or not all(addresses.is_public(address) for address in resolved):
        raise WrongAnswer
    return resolved


def _connect(host: str, public: Sequence[str], network: Network, deadline: Deadline) -> Connection:
    """Connect to one of the checked addresses; the certificate must be that of the host."""
    for address in public:
        try:
            connected = network.connect(address, deadline.remaining())
            encrypted = encrypt(connected, host, network.tls(), deadline)
        except ValueError:  # as an SSLCertVerificationError: the certificate is another host's
            raise WrongAnswer from None
        except OSError:
            continue  # the next address may accept
        return Connection(encrypted, "https", host, PORT, deadline)
    raise NoAnswer

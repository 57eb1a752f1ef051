"""The JSON objects that clients publish under their URLs: metadata documents and key sets, in memory for some minutes.

Anybody can be a client, so a URL may be an attacker's. Each step of a fetch has one rule:

    1. URL          https on port 443, with a host name                    `URL`
    2. addresses    the host is resolved once; every address is public     `_public_addresses`
    3. connection   to one of these addresses, also if the owner of the    `_connect`
                    host has changed its addresses by now
    4. response     a small JSON object; a redirect is an error            `https.exchange`

Without these rules an attacker could make this server call private networks (server-side request forgery). A fetch is
charged to the caller that causes it, so nobody can make this server fetch without end.
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mcp_functions.aws.connection import Connection, Deadline, encrypt, tls_context
from mcp_functions.oauth import addresses, https
from mcp_functions.oauth.https import NoAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from mcp_functions.oauth.caller_budgets import CallerBudgets

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
MAX_BYTES = 5 * 1024  # the largest document
FRESH_SECONDS = 300  # how long a document stays in memory
FAILED_SECONDS = 60  # how long a failure stays in memory
MAX_ENTRIES = 256  # documents and failures in memory


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


class Entry(NamedTuple):
    """The outcome of the last fetch of a URL."""

    document: dict[str, Any] | None  # None if the fetch has failed
    fresh_until: float  # when the URL has to be fetched again, in unix seconds


class Documents:
    """Fetches documents from URLs that strangers chose, and keeps them in memory."""

    def __init__(self, now: Callable[[], float], budgets: CallerBudgets, network: Network | None = None) -> None:
        """Start empty. The budgets limit how many fetches each caller causes; tests replace the network."""
        self._now = now
        self._budgets = budgets
        self._network = network or Network()
        self._entries: dict[str, Entry] = {}  # by URL, the oldest first
        self._lock = Lock()  # held while the entries change: the local server answers requests in several threads

    def get(self, url: str, caller_id: str) -> dict[str, Any] | None:
        """Return the JSON object at a URL; None if the URL may not be fetched, or has no usable document.

        Raises:
            Busy: the object has to be fetched, and the caller's budget is empty.
        """
        entry = self._entries.get(url)
        if entry is None or self._now() >= entry.fresh_until:
            self._budgets.charge(caller_id)
            try:
                entry = Entry(fetch(url, self._network), self._now() + FRESH_SECONDS)
            except NoAnswer:
                entry = Entry(None, self._now() + FAILED_SECONDS)
            self._add(url, entry)
        return entry.document

    def _add(self, url: str, entry: Entry) -> None:
        """Keep a document or a failure; the oldest entry makes room."""
        with self._lock:
            self._entries.pop(url, None)  # so that this entry becomes the newest
            self._entries[url] = entry
            if len(self._entries) > MAX_ENTRIES:
                oldest = next(iter(self._entries))
                del self._entries[oldest]


def may_be_fetched(url: str) -> bool:
    """Check whether a URL may be fetched; its host is not resolved yet."""
    return _match_url(url) is not None


def fetch(url: str, network: Network) -> dict[str, Any]:
    """Fetch a JSON object.

    Raises:
        NoAnswer: the URL or its host is not allowed, or the response is not a small JSON object.
    """
    allowed = _match_url(url)
    if allowed is None:
        raise NoAnswer
    deadline = Deadline(FETCH_SECONDS)
    public = _public_addresses(allowed["host"], network, deadline)
    connection = _connect(allowed["host"], public, network, deadline)
    response = https.exchange(connection, allowed["target"], MAX_BYTES)
    if response.status != HTTPStatus.OK:  # a redirect is refused too, because nothing has checked where it leads
        raise NoAnswer
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
    resolver = ThreadPoolExecutor(max_workers=1)  # the system's resolver has no time limit, so a thread waits for it
    try:
        resolved = resolver.submit(network.resolve, host).result(deadline.remaining())
    except (OSError, UnicodeError):  # no address, or no answer in time; or the name is too long for a host
        raise NoAnswer from None
    finally:
        resolver.shutdown(wait=False)
    if not resolved or not all(addresses.is_public(address) for address in resolved):
        raise NoAnswer
    return resolved


def _connect(host: str, public: Sequence[str], network: Network, deadline: Deadline) -> Connection:
    """Connect to one of the checked addresses; the certificate must be that of the host."""
    for address in public:
        try:
            connected = network.connect(address, deadline.remaining())
            encrypted = encrypt(connected, host, network.tls(), deadline)
        except OSError:
            continue  # the next address may accept
        return Connection(encrypted, "https", host, PORT, deadline)
    raise NoAnswer

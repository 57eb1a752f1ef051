"""Fetches a client's metadata document or its keys. Anybody can be a client, so the URL may be an attacker's.

`fetch` has one rule for each step:

    1. URL          https on port 443, with a host name                    `locate`
    2. addresses    the host is resolved once; every address is public     `_public_addresses`
    3. connection   to one of these addresses, also if the owner of the    `_open`
                    host has changed its addresses by now
    4. response     a small JSON object; a redirect is an error            `https.exchange`

Without these rules an attacker could make this server call private networks (server-side request forgery).
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from mcp_functions.aws.connection import Connection, Deadline, encrypt, tls_context
from mcp_functions.oauth import addresses, https
from mcp_functions.oauth.https import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from mcp_functions.oauth.caller_budgets import CallerBudgets

FETCH_SECONDS = 3.0  # the time limit for name, connection, handshake and response together
MAX_BYTES = 5 * 1024  # the largest document
MAX_URL_CHARS = 512
FRESH_SECONDS = 300  # how long a document is cached
FAILED_SECONDS = 60  # how long a failure is cached
MAX_ENTRIES = 256  # documents and failures in the cache
PORT = 443
OK = 200
CHARACTERS = r"[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+"  # of a URL (RFC 3986), without "#", which begins a fragment
HOST = r"([a-z0-9-]+\.)+[a-z][a-z0-9-]*"  # a name with a dot; the last label of an IP address begins with no letter


def locate(url: str) -> tuple[str, str]:
    """Check a URL, and split "https://host.example/client?v=1" into "host.example" and "/client?v=1".

    Raises:
        NoAnswer: the URL is not https on port 443, with a host name and a path.
    """
    if len(url) > MAX_URL_CHARS:
        raise NoAnswer(reason="the URL is too long")
    if not re.fullmatch(CHARACTERS, url):
        raise NoAnswer(reason="the URL has a fragment, or a character that no URL has")
    if not url.startswith("https://"):
        raise NoAnswer(reason="the URL is not https")
    parts = urlsplit(url)
    host = parts.netloc.removesuffix(f":{PORT}")
    if not re.fullmatch(HOST, host):  # "user@host" and "host:80" do not match, either
        raise NoAnswer(reason="the URL has no host name, or it has a user or another port")
    if not parts.path:
        raise NoAnswer(reason="the URL has no path")
    # A server resolves "." and "..": it reads "/good/../evil" as "/evil". A document would have many URLs, and a user
    # could be shown a URL that looks like another document's.
    for segment in parts.path.split("/"):
        if unquote(segment) in {".", ".."}:
            raise NoAnswer(reason="the path of the URL has a dot segment")
    return host, url.removeprefix(f"https://{parts.netloc}")


def may_be_fetched(url: str) -> bool:
    """Check whether a URL may be fetched; its host is not resolved yet."""
    try:
        locate(url)
    except NoAnswer:
        return False
    return True


def resolve(host: str) -> list[str]:
    """Return every address of a host.

    Raises:
        OSError: the host has no address.
    """
    answers = socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    ip_addresses = [str(address[0]) for *_rest, address in answers]
    return list(dict.fromkeys(ip_addresses))  # without duplicates, in the order of the resolver


def connect(address: str, seconds: float) -> socket.socket:
    """Connect to port 443 of an address."""
    return socket.create_connection((address, PORT), timeout=seconds)


class Network(NamedTuple):
    """The functions of the network that a fetch calls; tests replace them."""

    resolve: Callable[[str], Sequence[str]] = resolve  # host -> addresses
    connect: Callable[[str, float], socket.socket] = connect  # address, seconds -> connection
    tls: Callable[[], SSLContext] = tls_context  # the trusted certificates


class Fetched(NamedTuple):
    """The result of the last fetch of a URL."""

    document: dict[str, Any] | None  # None if the fetch has failed
    fresh_until: float  # when the URL has to be fetched again, in unix seconds


class SafeFetch:
    """Fetches JSON objects from URLs that strangers chose, and caches them for some minutes."""

    def __init__(self, now: Callable[[], float], budgets: CallerBudgets, network: Network | None = None) -> None:
        """Start with an empty cache.

        Args:
            now: the clock, unix seconds.
            budgets: how many fetches each caller may cause.
            network: the network for fetches, which tests replace.
        """
        self._now = now
        self._budgets = budgets
        self._network = network or Network()
        self._cache: dict[str, Fetched] = {}  # by URL, the oldest first
        self._lock = Lock()  # held while the cache changes: the local server answers requests in several threads

    def get(self, url: str, caller_id: str) -> dict[str, Any] | None:
        """Return the JSON object at a URL; None if the URL may not be fetched, or has no usable document.

        Args:
            url: the URL that a client named.
            caller_id: the caller whose budget of fetches is charged if the object is not in the cache.

        Raises:
            Busy: the caller's budget is empty.
        """
        fetched = self._cache.get(url)
        if fetched is None or self._now() >= fetched.fresh_until:
            self._budgets.charge(caller_id)
            fetched = self._fetch(url)
            self._add(url, fetched)
        return fetched.document

    def _fetch(self, url: str) -> Fetched:
        try:
            document = fetch(url, self._network)
        except NoAnswer:
            return Fetched(None, self._now() + FAILED_SECONDS)
        return Fetched(document, self._now() + FRESH_SECONDS)

    def _add(self, url: str, fetched: Fetched) -> None:
        """Cache a document or a failure; the oldest entry makes room."""
        with self._lock:
            self._cache.pop(url, None)  # so that this entry becomes the newest
            self._cache[url] = fetched
            if len(self._cache) > MAX_ENTRIES:
                oldest = next(iter(self._cache))
                del self._cache[oldest]


def fetch(url: str, network: Network) -> dict[str, Any]:
    """Fetch a JSON object, once.

    Raises:
        NoAnswer: the URL or its host is not allowed, or the response is not a small JSON object.
    """
    host, target = locate(url)
    deadline = Deadline.after(FETCH_SECONDS)
    public = _public_addresses(host, network, deadline)
    connection = _open(host, public, network, deadline)
    response = https.exchange(connection, target, MAX_BYTES)
    if response.status != OK:  # a redirect is refused too, because nothing has checked where it leads
        raise NoAnswer(reason="the response is not a document")
    return https.read_json(response)


def _public_addresses(host: str, network: Network, deadline: Deadline) -> Sequence[str]:
    """Resolve a host. One address that is not public is enough to refuse the host."""
    resolver = ThreadPoolExecutor(max_workers=1)  # the system's resolver has no time limit, so a thread waits for it
    try:
        resolved = resolver.submit(network.resolve, host).result(deadline.remaining())
    except (OSError, UnicodeError):  # no address, or no answer in time; or the name is too long for a host
        resolved = []
    finally:
        resolver.shutdown(wait=False)
    if not resolved or not all(addresses.is_public(address) for address in resolved):
        raise NoAnswer(reason="the host has no address, or one that is not public")
    return resolved


def _open(host: str, public: Sequence[str], network: Network, deadline: Deadline) -> Connection:
    """Connect to one of the checked addresses; the certificate must be that of the host."""
    for address in public:
        try:
            connected = network.connect(address, deadline.remaining())
            encrypted = encrypt(connected, host, network.tls(), deadline)
        except OSError:
            continue  # the next address may accept
        return Connection(encrypted, "https", host, PORT, deadline)
    raise NoAnswer(reason="the host does not accept a connection")

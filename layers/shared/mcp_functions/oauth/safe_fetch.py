"""Fetches what a client's URL names: a metadata document, or a set of keys. A stranger chose that URL.

    the URL         https on port 443, with a host name
    the addresses   the host is resolved once, and every address must be public
    the connection  to one of these addresses, so a name that changes its address a moment later changes nothing
    the response    a small JSON object; a redirect is an error, and no proxy is used

Without these rules a stranger could make this server call private networks (server-side request forgery).
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.aws.connection import Connection, Deadline, encrypt, tls_context
from mcp_functions.oauth import addresses, https
from mcp_functions.oauth.https import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from mcp_functions.oauth.caller_budgets import CallerBudgets

SECONDS = 3.0  # the time limit for name, connection, handshake and response together
MAX_BYTES = 5 * 1024  # the largest document
MAX_URL = 512  # characters
FRESH_SECONDS = 300  # how long a document stays in memory
FAILED_SECONDS = 60  # how long a failure stays in memory
MAX_ENTRIES = 256  # documents and failures in memory
PORT = 443
OK = 200
# A host name with a dot, and a path: no user, no port but 443, no IP address in place of the name, no fragment.
LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
LAST_LABEL = r"[a-z](?:[a-z0-9-]*[a-z0-9])?"
URL = rf"https://(?P<host>(?:{LABEL}\.)+{LAST_LABEL})(?::443)?(?P<target>/[A-Za-z0-9._~:/?@!$&'()*+,;=%-]*)"
# Servers resolve "." and "..", so two different URLs could name the same document.
DOT_SEGMENT = r"/(?:\.|%2[Ee]){1,2}(?:[/?]|$)"


def may_be_fetched(url: str) -> bool:
    """Check that a URL is https on port 443, with a host name and a path, and without dot segments."""
    if len(url) > MAX_URL or re.search(DOT_SEGMENT, url):
        return False
    return re.fullmatch(URL, url) is not None


def resolve(host: str) -> list[str]:
    """Return every address of a host.

    Raises:
        OSError: the host has no address.
    """
    answers = socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    ip_addresses = [str(address[0]) for *_rest, address in answers]
    return list(dict.fromkeys(ip_addresses))  # each once, in the order of the resolver


def connect(address: str, seconds: float) -> socket.socket:
    """Connect to port 443 of an address."""
    return socket.create_connection((address, PORT), timeout=seconds)


class Network(NamedTuple):
    """The functions of the network that a fetch calls; tests replace them."""

    resolve: Callable[[str], Sequence[str]] = resolve
    connect: Callable[[str, float], socket.socket] = connect
    tls: Callable[[], SSLContext] = tls_context


class Fetched(NamedTuple):
    """The result of the last fetch of a URL."""

    document: dict[str, Any] | None  # None if there was no usable document
    fresh_until: float  # when it has to be fetched again, in unix seconds


class SafeFetch:
    """Fetches JSON objects from URLs that strangers chose, and keeps them in memory for some minutes."""

    def __init__(self, now: Callable[[], float], budgets: CallerBudgets, network: Network | None = None) -> None:
        """Start with an empty memory.

        Args:
            now: the clock, unix seconds.
            budgets: how many fetches each caller may cause.
            network: the network for fetches, which tests replace.
        """
        self._now = now
        self._budgets = budgets
        self._network = network or Network()
        self._lock = Lock()
        self._memory: dict[str, Fetched] = {}  # by URL, the oldest first

    def get(self, url: str, caller_id: str) -> dict[str, Any] | None:
        """Return the JSON object at a URL; None if the URL may not be fetched, or has no usable document.

        Args:
            url: the URL that a client named.
            caller_id: the caller whose budget of fetches is used if the object is not in memory.

        Raises:
            Busy: the caller's budget is empty.
        """
        fetched = self._memory.get(url)
        if fetched is None or self._now() >= fetched.fresh_until:
            self._budgets.charge(caller_id)
            fetched = self._fetch(url)
            self._remember(url, fetched)
        return fetched.document

    def _fetch(self, url: str) -> Fetched:
        try:
            document = fetch(url, self._network)
        except NoAnswer:
            return Fetched(None, self._now() + FAILED_SECONDS)
        return Fetched(document, self._now() + FRESH_SECONDS)

    def _remember(self, url: str, fetched: Fetched) -> None:
        """Keep a document or a failure in memory; the oldest entry makes room."""
        with self._lock:
            self._memory.pop(url, None)  # so that this entry becomes the newest
            self._memory[url] = fetched
            if len(self._memory) > MAX_ENTRIES:
                oldest = next(iter(self._memory))
                del self._memory[oldest]


def fetch(url: str, network: Network) -> dict[str, Any]:
    """Fetch a JSON object, once.

    Raises:
        NoAnswer: the URL or its host is not allowed, or the response is not a small JSON object.
    """
    url_parts = re.fullmatch(URL, url)
    if url_parts is None or not may_be_fetched(url):
        raise NoAnswer(reason="the URL is not https on port 443, with a host name and a path")
    host = url_parts["host"]
    deadline = Deadline.after(SECONDS)
    public = _public_addresses(host, network, deadline)
    connection = _open(host, public, network, deadline)
    response = https.exchange(connection, https.Request(url_parts["target"]), MAX_BYTES)
    if response.status != OK:  # a redirect is refused too, because nothing has checked where it leads
        raise NoAnswer(reason="the response is not a document")
    return https.read_json(response)


def _public_addresses(host: str, network: Network, deadline: Deadline) -> Sequence[str]:
    """Resolve a host. One address that is not public is enough to refuse the host."""
    resolver = ThreadPoolExecutor(max_workers=1)  # the system's resolver has no time limit, so a thread waits for it
    try:
        resolved = resolver.submit(network.resolve, host).result(deadline.remaining())
    except (OSError, UnicodeError):  # it took too long, or the host has no address, or cannot be one
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

"""A browser for AWS's host names, which lead to the emulator: it keeps cookies, fills in forms, and runs no script."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass, field
from html import unescape
from http.client import HTTPSConnection
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.deployed.account import Account

FORM = re.compile(r"<form[^>]*>.*?</form>", re.DOTALL | re.IGNORECASE)
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
INPUT = re.compile(r"<input[^>]*>", re.IGNORECASE)
REDIRECTS = {301, 302, 303, 307}


@dataclass(frozen=True)
class Page:
    """What a server answered.

    Attributes:
        url: of the page, or of where a browser is sent if nobody on this machine can answer there.
        status: of HTTP.
        headers: by name in lower case.
        text: the body.
    """

    url: str
    status: int
    headers: dict[str, str]
    text: str

    @property
    def form(self) -> tuple[str, dict[str, str]]:
        """The URL and the fields of its first form."""
        found = FORM.search(self.text)
        assert found, self.text[:2000]
        head = found[0].partition(">")[0]
        action = unescape(dict(ATTRIBUTE.findall(head)).get("action", ""))
        fields = [dict(ATTRIBUTE.findall(one)) for one in INPUT.findall(found[0])]
        return urljoin(self.url, action), {
            one["name"]: unescape(one.get("value", "")) for one in fields if "name" in one
        }


@dataclass
class Browser:
    """One browser."""

    account: Account
    cookies: dict[str, dict[str, str]] = field(default_factory=dict)  # host -> name -> value

    def request(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Page:
        """Send one request, and follow nothing."""
        parts = urlsplit(url)
        host = parts.netloc
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.get(host, {}).items())
        sent = {**({"cookie": kept} if kept else {}), **(headers or {})}
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        with closing(_Connection(host, self.account)) as connection:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    cookies = SimpleCookie(value)
                    self.cookies.setdefault(host, {}).update({key: one.value for key, one in cookies.items()})
            found = {name.lower(): value for name, value in response.getheaders()}
        return Page(url, response.status, found, text)

    def get(self, url: str) -> Page:
        """Open a URL, and follow redirects of AWS's hosts."""
        return self._follow(self.request("GET", url))

    def submit(self, page: Page, **filled: str) -> Page:
        """Send the form of a page."""
        url, fields = page.form
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(page.url))
        form = {"content-type": "application/x-www-form-urlencoded", "origin": origin}
        return self._follow(self.request("POST", url, urlencode({**fields, **filled}).encode(), form))

    def _follow(self, page: Page) -> Page:
        while page.status in REDIRECTS:
            url = urljoin(page.url, page.headers["location"])
            if not str(urlsplit(url).hostname).endswith("amazonaws.com"):
                return Page(url, page.status, page.headers, "")
            page = self.request("GET", url)
        return page


class _Connection(HTTPSConnection):
    """A connection to a host name of AWS; with the emulator, to its front."""

    def __init__(self, host: str, account: Account) -> None:
        context = ssl.create_default_context(cafile=account.certificate)
        super().__init__(host, timeout=60, context=context)
        self._port = account.tls_port if account.emulator else None
        self._tls = context

    def connect(self) -> None:
        if self._port is None:
            super().connect()
            return
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=self.timeout)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)

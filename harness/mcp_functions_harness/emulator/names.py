"""AWS's host names on this machine, for a process that imports this module: they lead to the emulator.

It imports only the standard library, because MiniStack and the functions import it too. EMULATOR_TLS_PORT is the port
of the front that answers for port 443.
"""

import os
import socket
from typing import Any

DOMAINS = (".amazonaws.com", ".amazoncognito.com")
HTTPS = 443
_resolve = socket.getaddrinfo


def _getaddrinfo(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and name.endswith(DOMAINS):
        wanted = int(os.environ.get("EMULATOR_TLS_PORT", HTTPS)) if int(port or 0) == HTTPS else port
        return _resolve("127.0.0.1", wanted, *arguments, **named)
    return _resolve(host, port, *arguments, **named)


socket.getaddrinfo = _getaddrinfo

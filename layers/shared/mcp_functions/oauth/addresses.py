"""Which addresses of the Internet a client's URL may lead to: public ones, and none of this network or of AWS's."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1: deprecated, and also holds an IPv4 address
# Networks that are not public, but that some versions of Python call public.
_REFUSED = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526: deprecated relays of 6to4
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # RFC 8215: NAT64 of a local network
    ipaddress.IPv6Network("fec0::/10"),  # RFC 3879: deprecated
)


def is_public(text: str) -> bool:
    """Check whether an address is public, and also any IPv4 address inside an IPv6 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # an address with a zone (`fe80::1%eth0`), or none
        return False
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    return _is_public(address)


def network(text: str) -> str:
    """Return the network that is charged for an address: a customer has one IPv4 address, or 64 bits of IPv6."""
    try:
        return str(ipaddress.IPv6Network((text.partition("%")[0], 64), strict=False))
    except ValueError:  # an IPv4 address
        return text


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    inner = _inner(address) if isinstance(address, IPv6Address) else []
    if inner:
        return all(map(_is_public, inner))
    if any(address in refused for refused in _REFUSED):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _inner(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses inside an IPv6 address, which a gateway may connect to."""
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or address in _COMPATIBLE:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in inner if each is not None]

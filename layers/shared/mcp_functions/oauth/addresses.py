"""Checks that an IP address is public: a client's URL must not lead into this network, or to AWS's own services.

An IPv6 address can hold an IPv4 address, to which a gateway then connects: "64:ff9b::a00:1" leads to 10.0.0.1. So the
IPv4 address must be public, too.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1: deprecated, and also holds an IPv4 address
# Networks that are not public, though `is_global` is True for them in some versions of Python.
_NOT_PUBLIC = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890: assignments for protocols
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526: deprecated relays of 6to4
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # RFC 8215: NAT64 of a local network
    ipaddress.IPv6Network("fec0::/10"),  # RFC 3879: deprecated addresses of a local network
)


def is_public(text: str) -> bool:
    """Check whether a text is a public address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # the text is no address
        return False
    if isinstance(address, IPv6Address) and address.scope_id is not None:  # "fe80::1%eth0": of one network card
        return False
    return _is_public(address)


def network_of(text: str) -> str:
    """Return the network of one customer: an IPv4 address alone, or the /64 of an IPv6 address.

    The limits of a caller count by network, because a customer can use every address in it.
    """
    without_scope = text.partition("%")[0]
    try:
        return str(ipaddress.IPv6Network((without_scope, 64), strict=False))
    except ValueError:  # an IPv4 address
        return text


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        embedded = _embedded_ipv4(address)
        if embedded:
            return all(_is_public(each) for each in embedded)
    if any(address in each for each in _NOT_PUBLIC):  # False for a network of the other version of IP
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _embedded_ipv4(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address holds; an address of Teredo holds two."""
    embedded: list[IPv4Address] = []
    if address.ipv4_mapped:
        embedded.append(address.ipv4_mapped)
    if address.sixtofour:
        embedded.append(address.sixtofour)
    if address.teredo:
        embedded.extend(address.teredo)
    if address in _NAT64 or address in _COMPATIBLE:
        embedded.append(IPv4Address(address.packed[-4:]))
    return embedded

"""Which addresses of the Internet a client's URL may lead to: public ones, and none of this network or of AWS's."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1: deprecated, and also holds an IPv4 address
# Networks that some versions of Python take for public ones.
_REFUSED = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890: assignments for protocols
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526: deprecated relays of 6to4
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # RFC 8215: NAT64 of a local network
    ipaddress.IPv6Network("fec0::/10"),  # RFC 3879: deprecated addresses of a local network
)


def is_public(text: str) -> bool:
    """Check whether an address is public, and also any IPv4 address inside an IPv6 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # the text is no address
        return False
    if isinstance(address, IPv6Address) and address.scope_id is not None:  # a zone of this machine (`fe80::1%eth0`)
        return False
    return _is_public(address)


def network(text: str) -> str:
    """Return the network of one customer: an IPv4 address alone, or the /64 of an IPv6 address.

    Limits count by it, because a customer may use all addresses of the network.
    """
    try:
        return str(ipaddress.IPv6Network((text.partition("%")[0], 64), strict=False))
    except ValueError:  # an IPv4 address
        return text


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        embedded = _embedded_ipv4(address)
        if embedded:
            return all(_is_public(each) for each in embedded)
    is_refused = any(address in network for network in _REFUSED)  # no network holds an address of the other version
    return address.is_global and not (is_refused or address.is_multicast or address.is_reserved)


def _embedded_ipv4(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses inside an IPv6 address, because a gateway may connect to them."""
    embedded: list[IPv4Address] = []
    if address.ipv4_mapped:
        embedded.append(address.ipv4_mapped)
    if address.sixtofour:
        embedded.append(address.sixtofour)
    if address.teredo:
        embedded.extend(address.teredo)
    if address in _NAT64 or address in _COMPATIBLE:
        embedded.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return embedded

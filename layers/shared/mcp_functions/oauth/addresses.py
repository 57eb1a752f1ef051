"""Checks that an IP address is public: a client's URL must not lead into this network, or to AWS's own services.

An IPv6 address can hold an IPv4 address, to which a gateway then connects: "64:ff9b::a00:1" leads to 10.0.0.1. So the
IPv4 address must be public, too.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

from mcp_functions.seal.networks import NAT64

# Networks that are not public, though `is_global` is True for them in some versions of Python.
_NOT_PUBLIC = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890: assignments for protocols
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526: deprecated relays of 6to4
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # RFC 8215: NAT64 of a local network
    ipaddress.IPv6Network("fec0::/10"),  # RFC 3879: deprecated addresses of a local network
    # Deprecated forms that hold an IPv4 address. No site needs them.
    ipaddress.IPv6Network("::/96"),  # RFC 4291, 2.5.5.1: IPv4-compatible addresses
    ipaddress.IPv6Network("2001::/32"),  # RFC 4380: Teredo
    ipaddress.IPv6Network("2002::/16"),  # RFC 7526: 6to4
)


def is_public(text: str) -> bool:
    """Check whether a text is a public address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # the text is no address
        return False
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:  # "fe80::1%eth0": of one network card
            return False
        if address in NAT64:
            address = IPv4Address(address.packed[-4:])
        elif address.ipv4_mapped:  # "::ffff:10.0.0.1"
            address = address.ipv4_mapped
    if any(address in network for network in _NOT_PUBLIC):  # False for one of the other version
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved

"""The network of an IP address: the limits of callers without a sign-in count by it.

    198.51.100.7              itself
    2001:db8:1:2:3:4:5:6      2001:db8:1:2::/64
    ::ffff:198.51.100.7       198.51.100.7

One customer of a provider can use every address of an IPv6 network of 64 bits.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address


def network_of(text: str) -> str:
    """Return the network of an address; a text that is no IPv6 address is returned as it is."""
    without_card = text.partition("%")[0]  # "fe80::1%eth0" names a network card
    try:
        address = IPv6Address(without_card)
    except ValueError:
        return text
    ipv4 = _ipv4_of(address)
    return str(ipv4) if ipv4 else str(IPv6Network((address, 64), strict=False))


def _ipv4_of(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address of the caller that an IPv6 address holds; None if it holds none.

    Without this, all callers of a translator would share one network, and one 6to4 site would have 65,536 of them.
    """
    if address in NAT64:
        return IPv4Address(address.packed[-4:])
    if address.teredo:  # RFC 4380: the addresses of the server and of the client
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour

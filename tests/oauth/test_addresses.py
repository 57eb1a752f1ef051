"""The server fetches documents from public addresses only, in whatever notation a private address is written."""

from __future__ import annotations

import pytest

from mcp_functions.oauth.addresses import is_public


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001:81b::200e", "64:ff9b::5db8:d822", "::ffff:1.1.1.1"],
)
def test_is_public_accepts_a_public_address(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.1.2.3", "0.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254",
        "169.254.170.2", "169.254.79.128", "198.18.0.1", "192.0.2.1", "203.0.113.9", "224.0.0.1", "239.1.1.1",
        "240.0.0.1", "255.255.255.255", "192.0.0.8", "192.88.99.1",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::10.0.0.1",
        "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2002:7f00:1::",
        "2002:a9fe:a9fe::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
        "2001:0:a9fe:a9fe::1", "1", "0x7f.1", "localhost", "", "1.1.1.1:443",
    ],
)  # fmt: skip
def test_is_public_refuses_a_private_address(address: str) -> None:
    assert not is_public(address)

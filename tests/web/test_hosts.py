"""Hosts: which addresses are of the public internet, and what the person may allow besides."""

from ipaddress import ip_address

import pytest

from cass.web import hosts


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3"),
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.255", "100.100.100.200"),
        *("192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
        *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2002:808:808::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
        *("fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "100::1"),
    ],
)
def test_an_address_of_a_machine_or_a_network_at_home_is_not_public(text):
    assert not hosts.is_public(ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "151.101.1.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_public(text):
    assert hosts.is_public(ip_address(text))


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "allowed"),
    [
        ("localhost:8000", "localhost", 8000, "127.0.0.1", True),
        ("localhost:8000", "localhost", 8001, "127.0.0.1", False),
        ("localhost:8000", "127.0.0.1", 8000, "127.0.0.1", False),
        ("localhost", "localhost", 9, "::1", True),
        ("LocalHost", "localhost", 9, "::1", True),
        ("localhost", "localhost.evil.example", 80, "127.0.0.1", False),
        ("127.0.0.1:80", "127.0.0.1", 80, "127.0.0.1", True),
        ("[::1]:80", "::1", 80, "::1", True),
        ("*.corp.example", "wiki.corp.example", 443, "10.0.0.1", True),
        ("*.corp.example", "corp.example.evil", 443, "10.0.0.1", False),
        ("10.0.0.0/8", "anything.example", 80, "10.9.9.9", True),
        ("10.0.0.0/8", "anything.example", 80, "11.0.0.1", True),
        ("10.0.0.0/8", "anything.example", 80, "127.0.0.1", False),
        ("fd00::/8", "a", 80, "fd00::1", True),
        ("fd00::/8", "a", 80, "10.0.0.1", False),
    ],
)
def test_an_entry_allows_what_it_names_and_nothing_beside(entry, host, port, address, allowed):
    assert hosts.is_entry(entry)
    assert hosts.is_allowed(ip_address(address), host, port, [entry]) == allowed


@pytest.mark.parametrize("text", ["", "http://a/", "a/b", "10.0.0.0/33", "a:b", "a b", "user@a", "localhost:123456"])
def test_what_names_neither_a_host_nor_a_network_is_no_entry(text):
    assert not hosts.is_entry(text)

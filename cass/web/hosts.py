"""Hosts: which addresses a page may be fetched from. Pure.

What is not on the public internet is refused, whatever name led to it: this machine, the local network, the metadata of
a cloud. The person may name hosts and networks that are allowed all the same, in ``fetch_private`` of ``config.json``:
``localhost:8000`` (at this port only), ``wiki.corp.example``, ``*.corp.example``, ``10.0.0.0/8``.
"""

import fnmatch
import ipaddress
import re
from collections.abc import Collection, Iterable

from cass.errors import ToolError
from cass.pattern import pattern
from cass.web.url import Url

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

EXPECTED = "hosts such as localhost:8000 or *.corp.example, and networks such as 10.0.0.0/8"

_ENTRY = pattern(r"(\[[0-9a-f:.]+\]|[a-z0-9_*.-]+)(?::([0-9]{1,5}))?")
_UNICAST = ipaddress.IPv6Network("2000::/3")
_TUNNELS = tuple(map(ipaddress.IPv6Network, ("2001::/32", "2002::/16")))
"""Teredo and 6to4: in each address stands an IPv4 address that it may lead to. Nobody has a web server there."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""What networks without IPv4 call it; the last 32 bits are the address. RFC 6052."""


def is_public(address: Address) -> bool:
    """Whether `address` is one of the public internet, for one server."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return address in _UNICAST and address.is_global and not any(address in tunnel for tunnel in _TUNNELS)
    return address.is_global and not address.is_multicast


def is_allowed(address: Address, host: str, port: int, private: Collection[str]) -> bool:
    """Whether `host`, as a URL has it, may be asked at `address`. `private`: entries of ``fetch_private``."""
    return is_public(address) or any(_means(entry.lower(), address, host, port) for entry in private)


def judged(target: Url, addresses: Iterable[Address], private: Collection[str]) -> list[Address]:
    """`addresses` of a host, each of which may be asked. Raises ToolError: one that may not refuses them all."""
    found = list(addresses)
    for address in found:
        if not is_allowed(address, target.host, target.port, private):
            means = "" if str(address) == target.host else f" means {address}, which"
            raise ToolError(
                f"{target.host}{means} is not on the public internet, and is not fetched from. "
                f'Only the user can allow it: "fetch_private" in config.json takes "{target.authority}"'
            )
    return found


def known(host: str) -> list[Address]:
    """The address that `host` has whoever is asked; none for a name that must be looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return [ipaddress.IPv4Address("127.0.0.1")]  # RFC 6761, 6.3
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        return []


def is_entry(text: str) -> bool:
    """Whether `text` is a host, a host with a port, or a network."""
    return _network(text) is not None or ("/" not in text and _ENTRY.fullmatch(text.lower()) is not None)


def _means(entry: str, address: Address, host: str, port: int) -> bool:
    if network := _network(entry):
        return address in network
    found = _ENTRY.fullmatch(entry)
    if found is None or (found[2] and int(found[2]) != port):
        return False
    return fnmatch.fnmatchcase(host, re.sub(r"[\[\]]", "", found[1]))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None

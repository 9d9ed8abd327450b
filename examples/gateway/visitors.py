"""Whom a host answers: a page of another site, open in the operator's browser, cannot spend the upstream's key."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from attrs import frozen

from pipeline.errors import ClientError, ErrorKind

LOCAL = "localhost"


@frozen
class Visitors:
    """Those who name this machine, or a name that the operator allows.

    A browser sends a page's simple requests (a POST of plain text) to any address without asking; the page is named by
    `Origin`. A page whose own name was made to lead here (DNS rebinding) is named by `Host`.
    """

    names: frozenset[str] = frozenset()
    open: bool = False
    """The host listens on an address of the network: it may be asked for under any name."""

    @classmethod
    def of(cls, listen: str, allowed: Iterable[str]) -> "Visitors":
        """Of a host that listens there. Of those `allowed` a port says nothing."""
        hosts = (name.partition(":")[0] if name.count(":") == 1 else name for name in allowed)  # any port is meant
        names = frozenset(map(_plain, (listen, *hosts)))
        return cls(names - {""}, _is_address(listen) and not _is_local(listen))

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises `ClientError` for a request that somebody else has sent. Names of headers are in lower case."""
        host = _named(f"//{headers['host']}") if "host" in headers else ""
        if not self.open and "host" in headers and not self._knows(host):
            raise _refused("Host", headers["host"])
        origin = headers.get("origin")
        if origin is None or self._knows(named := _named(origin) or _plain(origin)):
            return
        if not (self.open and named and named == host):
            raise _refused("Origin", origin)

    def _knows(self, name: str) -> bool:
        return _is_local(name) or name in self.names


def _refused(header: str, value: str) -> ClientError:
    message = f"{header} {value[:200]!r} is not this machine; whom else to answer is told by --allow-host"
    return ClientError(message, kind=ErrorKind.PERMISSION)


def _named(url: str) -> str:
    """The name of a host; empty if there is none."""
    try:
        return _plain(urlsplit(url).hostname or "")
    except ValueError:
        return ""


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_local(name: str) -> bool:
    """Whether a name can lead to this machine alone."""
    if not _is_address(name):
        return name == LOCAL or name.endswith(f".{LOCAL}")
    address = ip_address(name)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback

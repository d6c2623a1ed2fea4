"""Cassady: a terminal coding agent made of small programs around one append-only chat file.

The embedding API (docs/python.md) is loaded when it is first asked for: a program that only sends never pays for it.
"""

TYPE_CHECKING = False  # as in `typing`, which takes 4 ms
if TYPE_CHECKING:
    from cass.access import Effect, Mode
    from cass.context import Request
    from cass.providers import Provider
    from cass.session import Session
    from cass.tools.host import HostTool
    from cass.turn import Turn

__version__ = "0.1.0"
__all__ = ["Effect", "HostTool", "Mode", "Provider", "Request", "Session", "Turn", "__version__"]

_HOMES = {
    "Effect": "access",
    "HostTool": "tools.host",
    "Mode": "access",
    "Provider": "providers",
    "Request": "context",
    "Session": "session",
    "Turn": "turn",
}

if not TYPE_CHECKING:  # a type checker knows the names, and no others

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'cass' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"cass.{_HOMES[name]}"), name)

"""Address: where an API is asked, from a base URL in any of the forms that people have at hand."""

import re
from urllib.parse import urlsplit, urlunsplit

from cass.pattern import pattern

_TAILS = pattern(r"/(chat/completions|responses|messages|models(/[^/]*)?)$")
"""What belongs to one request, not to the API: somebody may have copied a whole address."""
_VERSION = pattern(r"/v\d+\w*(/|$)")


def join(base_url: str, path: str, *, version: str, always: bool = False) -> str:
    """`path` below the root of an API: given with or without final slash, version, or the path of a request.

    A root without any path gets `version`; `always`: so does one whose path names none, such as
    ``https://api.example.com/anthropic``. A query is kept; that of `path` comes first.
    """
    parts = urlsplit(base_url.strip())
    root = _TAILS.sub("", re.sub("/{2,}", "/", parts.path).rstrip("/"))
    if not root or (always and not _VERSION.search(root)):
        root += version
    path, _, asked = path.partition("?")
    given = [part for part in parts.query.split("&") if part and part not in asked.split("&")]
    return urlunsplit(parts._replace(path=root + path, query="&".join(filter(None, [asked, *given])), fragment=""))

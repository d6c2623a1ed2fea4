"""Redaction: what looks like a secret, hidden in records before they leave the machine.

By its form (keys of known services, private keys, tokens), by the name that it is given (``API_KEY=…``), and by its
value, where the caller knows some. A courtesy: a secret that looks like nothing stays.
"""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from cass.pattern import pattern
from cass.records import Attachment, Fact

HIDDEN = "[redacted]"
VALUE_CHARS = 8
"""A shorter value stands for no secret: an answer may well hold it as a word."""

_FORMS = (
    # https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{20,})",
    r"\b(?:sk|pk|rk|fw|gsk|xai|pplx|hf|r8|nvapi|tvly)[-_](?:[a-z]{2,8}[-_])?[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\bxox[abeoprs]-[\w-]{10,}",
    r"\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{50,}",
    r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",  # a JSON Web Token
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----.*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|\Z)",
)
_NAMED = pattern(
    r"""(?P<before>\b\w*(?:api_?key|apikey|secret|token|passwd|password|credential)s?\w*["']?\s*(?:=|:)\s*["']?"""
    r"""|\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+|\bbearer\s+)"""
    r"""(?P<value>(?!\$|\[redacted\]|<|\.\.\.|true\b|false\b|null\b|none\b|[\d.]+\b)[^\s"'`,;@&)}\]]{6,})"""
    r"""|(?P<user>://[^/\s:@]+:)[^/\s@]+(?=@)""",
    re.IGNORECASE,
)


class Redaction:
    """Hides secrets; `values` are some that are known, and hidden wherever they stand."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = sorted({value for value in values if len(value) >= VALUE_CHARS}, key=len, reverse=True)
        self._forms = re.compile("|".join([*map(re.escape, known), *_FORMS]), re.DOTALL)
        self.hidden = 0
        """How many were."""

    def text(self, text: str) -> str:
        text = self._forms.sub(self._hide, text)
        return _NAMED.sub(lambda found: (found["before"] or found["user"]) + self._hide(found), text)

    def record(self, record: Fact) -> Fact:
        """The same with every text in it redacted, but for its ids and what a provider wants back as it came."""
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(record):
            if field.name == "raw":
                changed[field.name] = None
            elif field.name not in ("id", "tool_call_id", "request_id", "chat_id", "created_at", "turn", "answers"):
                changed[field.name] = self._value(getattr(record, field.name))
        return dataclasses.replace(record, **changed)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Attachment):
            return value._replace(name=self.text(value.name))
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._value, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: self._value(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return dataclasses.replace(value, **fields)
        return value

    def _hide(self, _: re.Match[str]) -> str:
        self.hidden += 1
        return HIDDEN

"""The schema: what an answer has to be, as JSON Schema says it. Source: https://json-schema.org/specification"""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from cass.errors import UsageError
from cass.pattern import pattern

_FENCED = pattern(r"```\w*\n(.*?)\n?```", re.DOTALL)


class Schema:
    """A JSON Schema that answers are checked against."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError for a file that holds none."""
        try:
            self._text = path.read_text("utf-8")
            schema = json.loads(self._text)
            kind = jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
        except OSError as e:
            raise UsageError(f"--schema {path}: {e.strerror}") from e
        except (ValueError, jsonschema.SchemaError) as e:
            raise UsageError(f"--schema {path}: expected a JSON Schema: {getattr(e, 'message', e)}") from e
        self._validator = kind(schema)

    def request(self, text: str) -> str:
        """`text`, and what form the answer must have."""
        return f"{text}\n\nAnswer with one JSON value and nothing else. It must fit this JSON Schema:\n\n{self._text}"

    def again(self, problem: str) -> str:
        """What to say after an answer that did not fit."""
        return f"The answer does not fit the schema: {problem}. Answer again, with one JSON value and nothing else."

    def value(self, answer: str) -> Any:
        """The JSON value of an answer, which may stand in a fence. Raises ValueError with what is wrong."""
        fenced = _FENCED.findall(answer)
        try:
            value = json.loads(fenced[-1] if fenced else answer)
        except ValueError as e:
            raise ValueError(f"it is not JSON: {e}") from None
        problems = sorted(self._validator.iter_errors(value), key=lambda e: list(map(str, e.absolute_path)))
        if problems:
            raise ValueError("; ".join(f"{problem.json_path}: {problem.message}"[:300] for problem in problems[:5]))
        return value

"""Patterns that are compiled when they are first used."""

import contextlib
import importlib
import re

import pytest
from test_order import SOURCES

from cass.pattern import _Pattern, pattern


def test_a_pattern_is_what_re_would_have_made_of_it():
    word = pattern(r"(\w)\w*", re.IGNORECASE)
    assert word.sub(r"\1", "one two") == "o t"
    assert [found[0] for found in word.finditer("one two", 1)] == ["ne", "two"]
    assert (word.pattern, word.flags, word.groups) == (r"(\w)\w*", re.IGNORECASE | re.UNICODE, 1)


def test_a_wrong_pattern_is_an_error_when_it_is_used():
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")


def test_every_pattern_compiles():
    values = []
    for name, source in SOURCES.items():
        if "import pattern" in source.read_text():
            with contextlib.suppress(ModuleNotFoundError):  # of an extra
                values += vars(importlib.import_module(f"cass.{name}")).values()
    assert len([value.pattern for value in values if isinstance(value, _Pattern)]) > 50

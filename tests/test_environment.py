"""Environment: which variables the tools are given."""

import pytest

from cass.environment import for_tools, is_entry

KEYS = {"OPENAI_API_KEY", "MINE", None}
KEY = "sk-in-use-0123456789"


def given(name: str, value: str = "v", *passed: str) -> bool:
    return name in for_tools({name: value}, keys=KEYS, in_use=KEY, passed=passed)


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "MINE", "My_Api_Key", "GH_TOKEN", "GITHUB_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY"),
        *("DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "A_SECRET", "SECRET", "SIGNING_KEY", "GITHUB_PAT", "APIKEY"),
        *("SENTRY_DSN", "DOCKER_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_PASSPHRASE", "API_KEYS", "X_TOKENS"),
    ],
)
def test_what_looks_like_a_secret_is_kept_from_tools(name):
    assert not given(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PATH",
            "HOME",
            "LANG",
            "PWD",
            "OLDPWD",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "PASSENGERS",
            "EDITOR",
            "TERM",
        ),
        *("SSH_AUTH_SOCK", "MONKEY", "COMPASS", "AUTHOR", "GIT_AUTHOR_NAME", "XDG_RUNTIME_DIR"),
    ],
)
def test_ordinary_variables_are_given(name):
    assert given(name)


@pytest.mark.parametrize(
    ("value", "is_given"),
    [
        (KEY, False),
        (f"Bearer {KEY}", False),
        ("postgres://me:secret@host/db", False),
        ("https://proxy:8080/", True),
        ("https://me@host/", True),
    ],
)
def test_a_secret_is_known_by_its_value_too(value, is_given):
    assert given("ANYTHING", value) == is_given


def test_a_key_that_is_none_takes_no_ordinary_variable_away():
    environ = {"PATH": "/opt/ollama/bin", "COPY": "ollama"}
    assert list(for_tools(environ, keys=(), in_use="ollama", passed=())) == ["PATH"]


@pytest.mark.parametrize(
    ("name", "value", "passed", "is_given"),
    [
        ("GH_TOKEN", "t", "GH_TOKEN", True),
        ("GH_TOKEN", "t", "GH_*", True),
        ("GH_TOKEN", "t", "*_TOKEN", True),
        ("GH_TOKEN", "t", "NPM_TOKEN", False),
        ("OPENAI_API_KEY", "t", "*", False),
        ("OPENAI_API_KEY", "t", "OPENAI_API_KEY", True),
        ("COPY", KEY, "C*", False),
        ("PATH", "p", "GH_TOKEN", True),
    ],
)
def test_shell_env_gives_what_it_names_and_a_pattern_gives_no_api_key(name, value, passed, is_given):
    assert given(name, value, passed) == is_given


def test_shell_env_sets_variables():
    environ = for_tools({"CI": "0"}, keys=(), in_use=None, passed=("CI=1", "EMPTY=", "A=b=c"))
    assert environ == {"CI": "1", "EMPTY": "", "A": "b=c"}


@pytest.mark.parametrize(
    ("text", "good"),
    [("GH_TOKEN", True), ("GH_*", True), ("*", True), ("A=b c", True), ("", False), ("=x", False), ("A*=x", False)]
    + [("A B", False), ("A=\0", False), ("1A", False)],
)
def test_an_entry_is_a_name_a_pattern_or_a_value(text, good):
    assert is_entry(text) == good

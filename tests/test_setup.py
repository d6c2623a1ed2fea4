"""Provider, key and model are chosen, tried, and written down when they work."""

import io
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cass import setup
from cass.config import Options, load
from cass.errors import CassError, ConfigError, MissingKey, ProviderError, UsageError
from cass.home import Home
from cass.setup import Wanted
from tests import scripted
from tests.stage import run
from tests.terminal import Pty

GOOD = "sk-good-0123456789"
MODELS = ("alpha", "beta-large", "beta-small")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def server() -> Iterator[scripted.Server]:
    with scripted.Server([scripted.step({"text": "ok"})] * 9, models=MODELS, key=GOOD) as made:
        yield made


def configure(home: Home, server: scripted.Server, **more: str) -> None:
    home.make()
    entry = {"id": "work", "base_url": server.base_url, **more}
    home.providers.write_text(json.dumps({"providers": [entry]}))


class Typist:
    """A person whose answers are known beforehand; a choice is a part of its text."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def choose(self, question: str, choices: Sequence[str], at: int = 0) -> int:
        self.asked.append("\n".join([question, *choices]))
        wanted = self.answers.pop(0)
        return next(n for n, choice in enumerate(choices) if wanted in choice)

    def secret(self, question: str) -> str:
        self.asked.append(question)
        return self.answers.pop(0)

    text = secret


def do(
    home: Home, person: Typist | None = None, environ: dict[str, str] | None = None, *, yes: bool = True, **wanted: str
) -> list[str]:
    said: list[str] = []
    setup.setup(home, Wanted(**wanted), environ or {}, person, said.append, yes=yes)
    assert person is None or person.answers == []
    return said


def files(home: Home) -> dict[str, Any]:
    paths = (home.config, home.providers)
    return {path.name: json.loads(path.read_text()) for path in paths if path.exists()}


def settings(home: Home, **environ: str) -> tuple[str, str, str | None]:
    found = load(home, Options(), environ, probe=False)
    return found.connection.provider, found.model, found.connection.api_key


def test_flags_alone_set_a_server_up_and_a_chat_then_uses_it(home, server):
    said = do(home, None, {"WK": GOOD}, provider="work", base_url=server.base_url, api_key_env="WK", model="beta-large")
    assert files(home) == {
        "config.json": {"default_provider": "work", "default_model": "beta-large"},
        "providers.json": {"providers": [{"id": "work", "base_url": server.base_url, "api_key_env": "WK"}]},
    }
    assert settings(home, WK=GOOD) == ("work", "beta-large", GOOD)
    assert [line.split(":")[0] for line in said] == ["written", "written"]
    for path in (home.config, home.providers):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_first_model_of_a_list_is_taken_where_none_is_named_and_one_that_is_not_listed_is_tried(home, server):
    where = {"provider": "work", "base_url": server.base_url, "api_key_env": "WK"}
    do(home, None, {"WK": GOOD}, **where)
    assert settings(home)[1] == "alpha"
    assert "gamma is not listed, but answers" in do(home, None, {"WK": GOOD}, provider="work", model="gamma")
    assert settings(home)[1] == "gamma"


@pytest.mark.parametrize(
    ("environ", "wanted", "kind", "words"),
    [
        ({"WK": "sk-bad"}, {"api_key_env": "WK"}, ProviderError, "HTTP 401: Incorrect API key provided; check the key"),
        ({}, {}, ProviderError, "no API key was sent"),
        ({}, {"api_key_env": "WK"}, MissingKey, "set WK: it holds the API key of work"),
        ({}, {"api_key_env": "not a name"}, ConfigError, "expected the name of a variable"),
        ({"WK": GOOD}, {"api_key_env": "WK", "base_url": "http://127.0.0.1:9/v1"}, ProviderError, "is the server"),
        ({"WK": GOOD}, {"api_key_env": "WK", "base_url": "nonsense"}, ConfigError, "expected a base_url"),
    ],
)  # fmt: skip
def test_what_does_not_work_is_said_and_nothing_is_written(home, server, environ, wanted, kind, words):
    with pytest.raises(kind) as caught:
        do(home, None, environ, **{"provider": "work", "base_url": server.base_url, **wanted})
    assert words in str(caught.value)
    assert files(home) == {}


def test_a_model_that_does_not_answer_is_not_written_and_near_names_are_given(home):
    with (
        scripted.Server([], models=MODELS) as server,
        pytest.raises(ProviderError, match=r"betalarge is not listed, and does not answer: .*it lists beta-large"),
    ):
        do(home, provider="work", base_url=server.base_url, model="betalarge")
    assert files(home) == {}


def test_nobody_to_ask_needs_a_provider_and_a_yes(home, server):
    with pytest.raises(UsageError, match="--provider: one of fireworks"):
        do(home)
    with pytest.raises(UsageError, match=r"add --yes: .*default_model = alpha"):
        do(home, None, {"WK": GOOD}, provider="work", base_url=server.base_url, api_key_env="WK", yes=False)
    assert files(home) == {}


@pytest.mark.parametrize(("name", "key"), [("WK", GOOD), ("", None)])
def test_another_server_is_asked_for_by_its_address(home, name, key):
    with scripted.Server([], models=MODELS, key=key) as server:
        do(home, Typist("another server", server.base_url, name, "beta-large", "yes"), {"WK": GOOD}, yes=False)
        where = server.base_url.split("/")[2]
    assert settings(home, WK=GOOD) == (where, "beta-large", key)


def test_another_server_without_an_address_is_none(home):
    with pytest.raises(UsageError, match="no address was given"):
        do(home, Typist("another server", ""))
    assert files(home) == {}


def test_a_model_from_a_file_has_nothing_to_set_up(home):
    with pytest.raises(UsageError, match=r"cass local MODEL\.gguf"):
        do(home, provider="local")
    with pytest.raises(UsageError, match="local needs no key"):
        setup.login(home, "local", {}, None, io.StringIO("k"), print)
    assert files(home) == {}


def test_what_else_the_person_has_in_their_files_stays(home, server):
    home.make()
    home.config.write_text('{"colour": [1], "show_reasoning": true, "default_model": "old"}')
    other = {"id": "other", "base_url": "https://example.com/v1", "more": {"a": 1}}
    home.providers.write_text(json.dumps({"x": 1, "providers": [other, {"id": "work", "name": "W", "kept": 2}]}))
    do(home, None, {"WK": GOOD}, provider="work", base_url=server.base_url, api_key_env="WK")
    assert files(home) == {
        "config.json": {"colour": [1], "show_reasoning": True, "default_model": "alpha", "default_provider": "work"},
        "providers.json": {
            "x": 1,
            "providers": [
                other,
                {"id": "work", "name": "W", "kept": 2, "base_url": server.base_url, "api_key_env": "WK"},
            ],
        },
    }


def test_the_address_that_an_older_file_gives_its_one_provider_is_not_given_to_another(home, server):
    home.make()
    home.config.write_text(
        json.dumps({"provider": "work", "model": "m", "base_url": server.base_url, "api_key_env": "WK"})
    )
    home.providers.write_text('{"providers": [{"id": "work"}]}')
    do(home, None, {"WK": GOOD}, provider="work")
    assert settings(home, WK=GOOD) == ("work", "alpha", GOOD)
    do(home, provider="demo")
    assert settings(home) == ("demo", "demo", None)
    assert settings(home, CASS_PROVIDER="work", CASS_MODEL="m", WK=GOOD)[2] == GOOD


def test_a_file_that_is_wrong_is_not_written_over(home, server):
    home.make()
    home.config.write_text('{"default_model": ')
    with pytest.raises(ConfigError, match=r"config\.json: line 1"):
        do(home, None, {"WK": GOOD}, provider="work", base_url=server.base_url, api_key_env="WK")
    assert home.config.read_text() == '{"default_model": '


def test_a_file_that_is_a_link_stays_one(home, tmp_path):
    home.make()
    (tmp_path / "mine.json").write_text('{"notify": "off"}')
    home.config.symlink_to(tmp_path / "mine.json")
    do(home, provider="demo")
    assert home.config.is_symlink()
    assert json.loads((tmp_path / "mine.json").read_text())["notify"] == "off"
    assert [path.name for path in home.root.iterdir() if path.name.startswith(".")] == []


def test_a_person_picks_and_may_still_say_no(home, server):
    home.make()
    home.providers.write_text(
        json.dumps({"providers": [{"id": "work", "base_url": server.base_url, "api_key_env": "WK"}]})
    )
    person = Typist("work", "which only you can read", GOOD, "beta-small", "yes")
    do(home, person, yes=False)
    assert settings(home) == ("work", "beta-small", GOOD)
    assert GOOD not in "".join(person.asked)
    before = files(home)
    with pytest.raises(UsageError, match="nothing was written"):
        do(home, Typist("demo", "no"), yes=False)
    assert files(home) == before


# ---- keys -----------------------------------------------------------------------------------------------------------


def login(home: Home, key: str = "", environ: dict[str, str] | None = None, **how: str) -> list[str]:
    said: list[str] = []
    setup.login(home, "work", environ or {}, None, io.StringIO(key), said.append, **how)
    return said


@pytest.fixture
def work(home, server) -> Home:
    home.make()
    home.providers.write_text(
        json.dumps({"providers": [{"id": "work", "base_url": server.base_url, "default_model": "a"}]})
    )
    return home


def entry(home: Home) -> dict[str, Any]:
    (found,) = files(home)["providers.json"]["providers"]
    return {name: value for name, value in found.items() if name not in ("id", "base_url", "default_model")}


def test_a_key_is_kept_by_the_name_of_its_variable_or_where_the_person_insists_itself(work):
    said = login(work, environ={"WK": GOOD}, api_key_env="WK")
    assert entry(work) == {"api_key_env": "WK"}
    said += login(work, f"{GOOD}\n", place="file")
    assert entry(work) == {"api_key": GOOD}
    assert "the key works: work lists 3 models" in said
    assert GOOD not in "".join(said)
    setup.logout(work, "work", {"WK": "x"}, said.append)
    assert entry(work) == {}


@pytest.mark.parametrize(
    ("key", "environ", "how", "words"),
    [
        ("sk-bad\n", {}, {"place": "file"}, "the key was refused: Incorrect API key provided"),
        ("", {}, {"place": "file"}, "no key was given"),
        ("two words\n", {}, {"place": "file"}, "without spaces"),
        (GOOD, {}, {}, "--api-key-env NAME, --file or --keyring"),
        ("", {}, {"api_key_env": "WK"}, "WK is not set"),
        ("", {"WK": "sk-bad"}, {"api_key_env": "WK"}, "check the key in WK"),
    ],
)
def test_a_key_that_does_not_work_is_not_kept(work, key, environ, how, words):
    with pytest.raises(CassError, match=words):
        login(work, key, environ, **how)
    assert entry(work) == {}


def test_a_key_in_the_keyring_is_fetched_when_the_provider_is_reached(work, tmp_path, monkeypatch):
    keyring = pytest.importorskip("keyring")
    kept: dict[tuple[str, str], str] = {}

    class Ring(keyring.backend.KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        login(work, GOOD, place="keyring")
        assert entry(work) == {"keyring": True}
        assert kept == {("cass", "work"): GOOD}
        do(work, provider="work")
        setup.logout(work, "work", {}, lambda _: None)
        assert (entry(work), kept) == ({}, {})
    finally:
        keyring.set_keyring(before)


# ---- the programs ---------------------------------------------------------------------------------------------------


def test_the_programs_do_all_this_from_a_script(home, server, tmp_path):
    environ = {**os.environ, "CASS_HOME": str(home.root), "WK": GOOD, "CASS_PROVIDER": ""}
    where = ("--provider", "work", "--base-url", server.base_url, "--api-key-env", "WK", "--yes")
    assert run("cass", "setup", *where, env=environ).returncode == 0
    assert run("cass", "-p", "hello", env=environ, cwd=tmp_path).stdout == "ok\n"
    assert run("cass", "login", "work", "--file", input=f"{GOOD}\n", env=environ).returncode == 0
    assert run("cass", "logout", "work", env=environ).returncode == 0
    done = run("cass", "login", "nobody", "--file", input="x\n", env=environ)
    assert (done.returncode, "expected one of" in done.stderr) == (2, True)


def test_on_a_terminal_it_asks_and_shows_no_key(home, server):
    home.make()
    home.providers.write_text(
        json.dumps({"providers": [{"id": "work", "base_url": server.base_url, "api_key_env": "WK"}]})
    )
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    sat = Pty(["bin/cass", "setup"], environ | {"CASS_HOME": str(home.root)})
    try:
        for question, typed in [
            ("Which provider?", "work"), ("The key of work?", "2"), ("API key of work", GOOD), ("Which one?", "large"),
            ("Write this?", "yes"),
        ]:  # fmt: skip
            sat.until(question)
            sat.until(": ")
            sat.type(f"{typed}\r")
        assert sat.end() == 0
    finally:
        sat.close()
    assert GOOD.encode() not in sat.said
    assert settings(home) == ("work", "beta-large", GOOD)


def test_a_key_that_is_typed_where_a_number_is_wanted_is_not_repeated_and_escape_leaves(home):
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    sat = Pty(["bin/cass", "setup", "--provider", "groq"], environ | {"CASS_HOME": str(home.root)})
    try:
        sat.until("Ctrl-C leaves [1]: ")
        sat.type(f"{GOOD}\r")
        sat.until("that is none of them")
        sat.until("Ctrl-C leaves [1]: ")
        sat.type("\x1b\r")
        assert sat.end() == 130
    finally:
        sat.close()
    assert sat.said.count(GOOD.encode()) == 1  # the terminal's own echo
    assert sat.said.count(b"The key of groq?") == 1


@pytest.mark.parametrize(
    "asked",
    [[("Which provider?", "")], [("Which provider?", "groq\r"), ("The key of groq?", "2\r"), ("it is not shown", "")]],
    ids=["a choice", "a secret"],
)
@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_whoever_leaves_at_a_question_hears_nothing_more(home, asked, key):
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    sat = Pty(["bin/cass", "setup"], environ | {"CASS_HOME": str(home.root)})
    try:
        for question, typed in asked:
            sat.until(question)
            sat.until(": ")
            sat.until(lambda: sat.is_asleep)  # Python's input() looks for a signal only after its read
            sat.type(typed or key)
        assert sat.end() == 130
    finally:
        sat.close()
    assert b"Abort" not in sat.said
    assert not home.providers.exists()

"""Settings: who wins, what a wrong file says, and where a key goes."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from cass import config, known
from cass.access import Mode
from cass.config import Options, Settings
from cass.errors import ConfigError, MissingKey
from cass.home import Home
from tests import scripted

FIREWORKS = "accounts/fireworks/models/qwen3p7-plus"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


def write(path: Path, value: Any) -> None:
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def load(home: Home, environ: dict[str, str] | None = None, **options: Any) -> Settings:
    return config.load(home, Options(**options), environ or {}, probe=False)


def place(settings: Settings) -> tuple[str, str, str | None]:
    """Base URL, model and key in use."""
    return settings.connection.base_url, settings.model, settings.connection.api_key


# ---- providers ------------------------------------------------------------------------------------------------------


def test_nothing_configured_is_the_demo_and_says_so(home):
    settings = load(home)
    assert (settings.connection.kind, settings.model) == ("demo", "demo")
    [notice] = settings.notices
    assert "no language model" in notice
    assert "FIREWORKS_API_KEY" in notice
    assert str(home.config) in notice
    assert list(home.root.iterdir()) == []


@pytest.mark.parametrize("provider", [p for p in known.PROVIDERS.values() if p.key], ids=lambda p: p.id)
def test_a_key_alone_is_enough(home, provider):
    settings = load(home, {provider.key: "k"})
    assert settings.connection.provider == provider.id
    assert place(settings) == (provider.base_url, provider.model, "k")
    assert (settings.connection.kind, settings.notices) == (provider.kind, ())
    assert not settings.context_assumed
    config.require_key(settings)


def test_the_first_key_in_the_table_wins(home):
    assert load(home, {"OPENAI_API_KEY": "o", "FIREWORKS_API_KEY": "f"}).connection.provider == "fireworks"
    assert load(home, {"OPENAI_API_KEY": "o", "FIREWORKS_API_KEY": "  "}).connection.provider == "openai"


def test_the_default_is_fireworks(home):
    fireworks = known.PROVIDERS["fireworks"]
    assert next(iter(known.PROVIDERS)) == "fireworks"
    assert (fireworks.model, fireworks.key) == (FIREWORKS, "FIREWORKS_API_KEY")
    assert fireworks.base_url == "https://api.fireworks.ai/inference/v1"


@pytest.mark.parametrize("how", ["flag", "variable", "file"])
def test_a_chosen_provider_without_its_key_is_opened_and_names_the_variable(home, how):
    environ = {"CASS_PROVIDER": "kimi"} if how == "variable" else {}
    options = {"provider": "kimi"} if how == "flag" else {}
    if how == "file":
        write(home.config, {"default_provider": "kimi"})
    settings = load(home, environ, **options)
    with pytest.raises(MissingKey, match=r"^set MOONSHOT_API_KEY") as caught:
        config.require_key(settings)
    assert caught.value.status == 2


def test_the_provider_of_the_flag_beats_the_variable_and_that_the_file(home):
    write(home.config, {"default_provider": "openai", "default_model": "of-the-file"})
    assert load(home).connection.provider == "openai"
    assert load(home, {"CASS_PROVIDER": "groq"}).connection.provider == "groq"
    assert load(home, {"CASS_PROVIDER": "groq"}, provider="xai").connection.provider == "xai"


def test_the_model_of_the_flag_beats_the_variable_and_that_the_file(home):
    write(home.config, {"default_provider": "openai", "default_model": "of-the-file"})
    assert load(home).model == "of-the-file"
    assert load(home, {"CASS_MODEL": "of-the-variable"}).model == "of-the-variable"
    assert load(home, {"CASS_MODEL": "of-the-variable"}, model="of-the-flag").model == "of-the-flag"


def test_another_provider_has_neither_the_model_nor_the_address_of_the_configured_one(home):
    write(
        home.config,
        {"default_provider": "openai", "default_model": "x", "base_url": "https://x.test", "api_key_env": "X"},
    )
    settings = load(home, {"GROQ_API_KEY": "g", "X": "x"}, provider="groq")
    assert place(settings) == (known.PROVIDERS["groq"].base_url, known.PROVIDERS["groq"].model, "g")


def test_the_configuration_of_the_plan_works_without_a_word(home):
    written = {
        "provider": "openai-compatible",
        "model": "the-model",
        "base_url": "https://x.test/v1",
        "api_key_env": "X_KEY",
        "default_access_mode": "full-access",
    }
    write(home.config, written)
    settings = load(home, {"X_KEY": "k", "FIREWORKS_API_KEY": "f"})
    assert place(settings) == ("https://x.test/v1", "the-model", "k")
    assert (settings.mode, settings.notices) == (Mode.FULL_ACCESS, ())
    with pytest.raises(MissingKey, match="X_KEY"):
        config.require_key(load(home))


def test_a_kind_without_an_address_is_the_default_provider(home):
    write(home.config, {"provider": "openai-compatible", "model": "m"})
    settings = load(home, {"FIREWORKS_API_KEY": "f"})
    assert place(settings) == (known.PROVIDERS["fireworks"].base_url, "m", "f")


def test_the_files_of_cassady_04_work_without_a_word(home):
    write(
        home.config,
        {
            "default_provider": "mine",
            "default_model": "big",
            "default_access_mode": "workspace-edit",
            "default_reasoning_effort": "high",
            "model_tool_result_limit": 5000,
            "ui_tool_result_limit": 700,
            "show_reasoning": False,
            "confirm_destructive_operations": True,
        },
    )
    entry = {
        "id": "mine",
        "name": "Mine",
        "kind": "openai-compatible",
        "base_url": "https://m.test",
        "api_key": "$MINE",
    }
    write(home.providers, {"providers": [entry | {"default_model": "small", "models": ["big", "small"]}]})
    facts = {"id": "big", "provider": "mine", "context_length": 9000, "max_output_tokens": 400, "supports_tools": False}
    write(home.models, {"models": [facts | {"reasoning": {"supported": True}}, {"id": "big", "provider": "another"}]})
    settings = load(home, {"MINE": "k"})
    assert place(settings) == ("https://m.test", "big", "k")
    assert (settings.mode, settings.effort, settings.rules.confirm_destructive) == (Mode.WORKSPACE_EDIT, "high", True)
    assert (settings.max_tool_output, settings.ui_tool_result_limit, settings.show_reasoning) == (5000, 700, False)
    assert (settings.context_limit, settings.context_assumed, settings.max_tokens) == (9000, False, 400)
    assert (settings.supports_tools, settings.notices) == (False, ())


def test_a_provider_of_the_file_stands_over_the_built_in_one(home):
    write(
        home.providers, {"providers": [{"id": "openai", "base_url": "https://proxy.test/v1", "api_key_env": "PROXY"}]}
    )
    settings = load(home, {"PROXY": "p", "OPENAI_API_KEY": "o"}, provider="openai")
    assert place(settings) == ("https://proxy.test/v1", "gpt-5.1", "p")
    assert settings.connection.quirks.max_tokens_field == "max_tokens"
    assert load(home, {"OPENAI_API_KEY": "o"}, provider="openai").connection.api_key is None


def test_a_provider_of_the_file_with_a_key_is_found_by_itself(home):
    entry = {"id": "mine", "base_url": "https://m.test", "api_key": "stored", "default_model": "m"}
    write(home.providers, {"providers": [entry]})
    assert place(load(home)) == ("https://m.test", "m", "stored")


@pytest.mark.parametrize("kind", ["openai-compatible", "openai-responses", "anthropic", "gemini"])
def test_a_provider_of_ones_own_speaks_the_kind_that_its_file_says(home, kind):
    entry = {"id": "mine", "kind": kind, "base_url": "https://m.test", "default_model": "m"}
    write(home.providers, {"providers": [entry]})
    settings = load(home, provider="mine")
    assert (settings.connection.kind, settings.connection.base_url, settings.notices) == (kind, "https://m.test", ())
    assert load(home, provider=kind, base_url="https://x.test", model="m").connection.kind == kind


@pytest.mark.parametrize(
    ("provider", "kind", "compatible"),
    [
        ("openai", "openai-responses", "https://api.openai.com/v1"),
        ("anthropic", "anthropic", "https://api.anthropic.com/v1"),
        ("gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("groq", "openai-compatible", "https://api.groq.com/openai/v1"),
    ],
)
def test_a_built_in_provider_speaks_its_own_kind_and_that_of_openai_where_a_file_says_so(
    home, provider, kind, compatible
):
    assert load(home, provider=provider).connection.kind == kind
    write(home.providers, {"providers": [{"id": provider, "kind": "openai-compatible"}]})
    connection = load(home, provider=provider).connection
    assert (connection.kind, connection.base_url) == ("openai-compatible", compatible)
    assert connection.api_key_env == known.PROVIDERS[provider].key


@pytest.mark.parametrize(
    ("provider", "base_url", "kind"),
    [
        ("anthropic", "https://x.test", "anthropic"),
        ("anthropic", "https://api.anthropic.com/v1/chat/completions", "openai-compatible"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai/", "openai-compatible"),
        ("gemini", "https://x.test/v1beta/models/m:streamGenerateContent?alt=sse", "gemini"),
        ("openai", "https://x.test/v1", "openai-compatible"),
        ("openai", "https://x.test/v1/responses", "openai-responses"),
        ("openai", "https://api.openai.com", "openai-responses"),
        ("groq", "https://x.test/v1/messages/", "anthropic"),
    ],
)
def test_an_address_may_tell_which_kind_is_spoken_there(home, provider, base_url, kind):
    assert load(home, provider=provider, base_url=base_url).connection.kind == kind


@pytest.mark.parametrize(
    ("said", "kept"), [(None, None), ("", None), ("none", "none"), ("off", "none"), ("high", "high")]
)
def test_no_effort_is_not_the_same_as_none(home, said, kept):
    assert load(home, provider="openai", effort=said).effort == kept


# ---- base URL and key -----------------------------------------------------------------------------------------------


def test_a_base_url_alone_is_an_endpoint_of_its_own_and_gets_no_built_in_key(home):
    settings = load(home, {"FIREWORKS_API_KEY": "f", "OPENAI_API_KEY": "o"}, base_url="https://x.test", model="m")
    assert place(settings) == ("https://x.test", "m", None)
    config.require_key(settings)


def test_a_base_url_with_a_key_variable_gets_that_key(home):
    settings = load(home, {"X": "k"}, base_url="https://x.test", model="m", api_key_env="X")
    assert place(settings) == ("https://x.test", "m", "k")
    with pytest.raises(MissingKey, match="set X"):
        config.require_key(load(home, base_url="https://x.test", model="m", api_key_env="X"))


def test_flags_for_address_model_and_key_each_override_the_file(home):
    write(
        home.config, {"provider": "openai-compatible", "model": "m", "base_url": "https://a.test", "api_key_env": "A"}
    )
    environ = {"A": "a", "B": "b"}
    assert place(load(home, environ, base_url="https://b.test")) == ("https://b.test", "m", "a")
    assert place(load(home, environ, model="n")) == ("https://a.test", "n", "a")
    assert place(load(home, environ, api_key_env="B")) == ("https://a.test", "m", "b")


def test_a_built_in_key_goes_to_another_address_only_with_the_provider_named_beside_it(home):
    environ = {"OPENAI_API_KEY": "o"}
    assert load(home, environ, provider="openai", base_url="https://x.test").connection.api_key == "o"
    write(home.config, {"default_provider": "openai"})
    assert load(home, environ).connection.api_key == "o"
    assert load(home, environ, base_url="https://x.test").connection.api_key is None
    write(home.config, {"default_provider": "openai", "base_url": "https://x.test"})
    assert load(home, environ).connection.api_key == "o"


def test_only_openai_itself_gets_its_own_name_for_the_limit(home):
    assert load(home, provider="openai").connection.quirks.max_tokens_field == "max_completion_tokens"
    assert load(home, provider="openai", base_url="https://x.test").connection.quirks.max_tokens_field == "max_tokens"


@pytest.mark.parametrize("key", ["k\n", " k ", "k\r\n"])
def test_a_key_loses_the_line_end_that_was_copied_with_it(home, key):
    assert load(home, {"OPENAI_API_KEY": key}).connection.api_key == "k"


@pytest.mark.parametrize("key", ["a b", "schlüssel", "a\nb"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(home, key):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY: expected an API key") as caught:
        load(home, {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_a_key_is_in_no_repr(home):
    assert "SECRET" not in repr(load(home, {"OPENAI_API_KEY": "SECRET"}))


@pytest.mark.parametrize("url", ["x.test/v1", "ftp://x.test", "http://", "http://[::1", "http://h:port", ""])
def test_a_base_url_that_is_none_is_refused(home, url):
    if url:
        with pytest.raises(ConfigError, match="expected a base_url that begins with http"):
            load(home, base_url=url, model="m")
    write(home.config, {"base_url": url})
    with pytest.raises(ConfigError, match='"base_url": expected a URL'):
        load(home, model="m")


# ---- modes and numbers ----------------------------------------------------------------------------------------------


def test_the_mode_is_read_only_until_it_is_said_otherwise(home):
    assert load(home).mode is Mode.READ_ONLY
    write(home.config, {"default_access_mode": "workspace-edit"})
    assert load(home).mode is Mode.WORKSPACE_EDIT
    assert load(home, {"CASS_MODE": "full-access"}).mode is Mode.FULL_ACCESS
    assert load(home, {"CASS_MODE": "full-access"}, mode="read-only").mode is Mode.READ_ONLY
    assert load(home, mode=Mode.FULL_ACCESS).mode is Mode.FULL_ACCESS


def test_an_answer_has_8192_tokens_unless_it_is_said_otherwise(home):
    assert load(home).max_tokens == 8192
    write(home.config, {"max_tokens": 10})
    assert load(home).max_tokens == 10
    assert load(home, {"CASS_MAX_TOKENS": "20"}).max_tokens == 20
    assert load(home, {"CASS_MAX_TOKENS": "20"}, max_tokens=30).max_tokens == 30


def test_an_unknown_model_is_given_32768_tokens_and_that_is_marked(home):
    settings = load(home, {"OPENAI_API_KEY": "o"}, model="unheard-of")
    assert (settings.context_limit, settings.context_assumed) == (32_768, True)


def test_a_small_context_leaves_room_for_the_question(home):
    write(home.models, {"models": [{"id": "tiny", "context_length": 8192}]})
    environ = {"OPENAI_API_KEY": "o"}
    assert load(home, environ, model="tiny").max_tokens == 2048
    assert load(home, environ, model="tiny", max_tokens=8000).max_tokens == 8000


def test_another_model_brings_its_own_facts(home):
    write(home.models, {"models": [{"id": "tiny", "context_length": 8192, "reasoning": {"default_effort": "low"}}]})
    settings = load(home, {"OPENAI_API_KEY": "o"})
    changed = config.with_model(settings, home, "tiny")
    assert (changed.model, changed.context_limit, changed.max_tokens, changed.effort) == ("tiny", 8192, 2048, "low")
    assert changed.connection is settings.connection
    assert config.with_model(changed, home, settings.model).max_tokens == settings.max_tokens
    assert config.with_model(settings, home, "tiny", "high").effort == "high"


def test_rules_are_taken_from_the_file(home):
    write(home.config, {"allow": ["shell(git status)"], "deny": ["write"]})
    assert load(home).rules.allow == ("shell(git status)",)
    assert load(home).rules.deny == ("write",)


def test_another_configuration_file_can_be_named(home, tmp_path):
    write(tmp_path / "other.json", {"default_provider": "groq"})
    assert load(home, config=tmp_path / "other.json").connection.provider == "groq"
    with pytest.raises(ConfigError, match="no such file"):
        load(home, config=tmp_path / "missing.json")


SECRET = "sk-live-0123"
BASE_URLS = [
    f"https://me:{SECRET}@x.test/v1",
    f"https://{SECRET}@x.test/v1",
    f"https://x.test/v1?key={SECRET}",
    f"https://x.test/v1?api-version=1&access_token={SECRET}",
    f"https://x.test/v1?{SECRET}",
    f"ftp://x.test/{SECRET}",
]


@pytest.mark.parametrize("url", BASE_URLS)
@pytest.mark.parametrize("where", ["flag", "config.json", "providers.json"])
def test_an_address_with_a_password_or_a_key_in_it_is_refused_and_not_shown(home, url, where):
    if where == "config.json":
        write(home.config, {"base_url": url})
    if where == "providers.json":
        write(home.providers, {"providers": [{"id": "x", "base_url": url}]})
    with pytest.raises(ConfigError, match="holds neither password nor key: name the variable of a key") as caught:
        load(home, model="m", **({"base_url": url} if where == "flag" else {}))
    assert SECRET not in str(caught.value)


def test_an_address_may_have_a_version_in_its_query(home):
    url = "https://x.test/openai?api-version=2024-06-01"
    assert load(home, base_url=url, model="m").connection.base_url == url


@pytest.mark.parametrize("name", [SECRET, "a b", "1A", "schlüssel", f"${{{SECRET}}}"])
@pytest.mark.parametrize("where", ["flag", "config.json", "providers.json", "$"])
def test_a_key_in_place_of_the_name_of_its_variable_is_refused_and_not_shown(home, name, where):
    if where == "config.json":
        write(home.config, {"api_key_env": name})
    if where == "providers.json":
        write(home.providers, {"providers": [{"id": "x", "api_key_env": name}]})
    if where == "$":
        write(home.providers, {"providers": [{"id": "x", "api_key": f"${name}"}]})
    with pytest.raises(ConfigError, match=r"expected (the|a key, or \$ and the) name of (a|the) variable") as caught:
        load(home, model="m", base_url="http://x.test", **({"api_key_env": name} if where == "flag" else {}))
    assert name not in str(caught.value)


def test_names_of_variables_with_keys_are_those_of_the_table_and_of_all_files(home):
    built_in = {provider.key for provider in known.PROVIDERS.values() if provider.key}
    assert config.secret_names(home) == built_in
    write(home.config, {"api_key_env": "IN_CONFIG"})
    entries = [{"id": "a", "api_key_env": "BY_NAME"}, {"id": "b", "api_key": "$BEHIND"}, {"id": "c", "api_key": "k"}, 1]
    write(home.providers, {"providers": entries})
    assert config.secret_names(home) == built_in | {"IN_CONFIG", "BY_NAME", "BEHIND"}


@pytest.mark.parametrize(
    "written", ["{", "[]", '{"providers": 1}', '{"api_key_env": 1, "providers": [{"api_key": 1}]}']
)
def test_a_wrong_file_names_no_variable_and_hides_none_of_the_others(home, written):
    write(home.providers, written)
    write(home.config, {"api_key_env": "IN_CONFIG"})
    assert "IN_CONFIG" in config.secret_names(home)
    write(home.config, written)
    assert "OPENAI_API_KEY" in config.secret_names(home)


# ---- wrong files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("config.json", "{", "config.json: line 1, column 2"),
        ("config.json", "[]", "config.json: expected a JSON object"),
        ("config.json", {"default_access_mode": "all"}, '"default_access_mode": expected one of read-only, '),
        ("config.json", {"show_reasoning": "yes"}, '"show_reasoning": expected true or false'),
        ("config.json", {"model_tool_result_limit": 0}, '"model_tool_result_limit": expected a whole number above 0'),
        ("config.json", {"max_tokens": True}, '"max_tokens": expected a whole number above 0'),
        ("config.json", {"default_model": ""}, '"default_model": expected a text'),
        ("config.json", {"allow": "ls"}, '"allow": expected a list of rules'),
        ("config.json", {"deny": ["rm -rf"]}, '"deny": expected a list of rules'),
        ("config.json", {"default_provider": "nope"}, 'config.json: "default_provider": expected one of fireworks, '),
        ("config.json", {"provider": "nope"}, 'config.json: "provider": expected one of fireworks, '),
        ("providers.json", {"providers": {}}, 'providers.json: "providers": expected a list of an object'),
        ("providers.json", {"providers": [{}]}, 'providers.json: providers[0]: expected an "id"'),
        ("providers.json", {"providers": [{"id": "x", "kind": "y"}]}, 'providers.json: x: "kind": expected one of'),
        ("providers.json", {"providers": [{"id": "x", "base_url": "y"}]}, 'x: "base_url": expected a URL'),
        ("models.json", {"models": [{"id": "x", "context_length": "9"}]}, 'models.json: x: "context_length": expected'),
        (
            "models.json",
            {"models": [{"id": "x", "prices": {"input": 1}}]},
            'x: "prices": expected USD for',
        ),
        (
            "models.json",
            {"models": [{"id": "x", "reasoning": {"supported": 1}}]},
            '"supported": expected true',
        ),
        ("config.json", {"max_cost": 0}, '"max_cost": expected USD, a number above 0'),
    ],
)
def test_a_wrong_file_names_file_key_and_what_was_expected(home, name, written, said):
    write(home.root / name, written)
    with pytest.raises(ConfigError) as caught:
        load(home)
    assert said in str(caught.value)
    assert str(home.root / name) in str(caught.value)


def test_an_unknown_key_is_a_notice_that_names_it(home):
    write(home.config, {"default_provider": "demo", "colour": 1})
    write(home.providers, {"providers": [{"id": "x", "colour": 1}], "more": 2})
    notices = load(home).notices
    assert f'{home.config}: unknown key "colour"' in notices
    assert f'{home.providers}: unknown key "more"' in notices
    assert f'{home.providers}: x: unknown key "colour"' in notices


@pytest.mark.parametrize("written", ["", "{}", '\ufeff{"show_reasoning": false}', '{"model": null}'])
def test_an_empty_file_a_byte_order_mark_and_null_are_no_faults(home, written):
    write(home.config, written)
    assert load(home).connection.kind == "demo"


def test_a_file_that_cannot_be_read_is_named(home):
    home.config.mkdir()
    with pytest.raises(ConfigError, match=r"config\.json"):
        load(home)


@pytest.mark.parametrize(
    ("environ", "options", "said"),
    [
        ({"CASS_PROVIDER": "nope"}, {}, "CASS_PROVIDER: expected one of"),
        ({}, {"provider": "nope"}, "--provider: expected one of"),
        ({"CASS_MODE": "nope"}, {}, "CASS_MODE"),
        ({}, {"mode": "nope"}, "access mode"),
        ({"CASS_LAYOUT": "nope"}, {}, "layout"),
        ({"CASS_MAX_TOKENS": "many"}, {}, "CASS_MAX_TOKENS: expected a whole number"),
        ({}, {"base_url": "https://x.test"}, "expected a model"),
    ],
)
def test_a_wrong_word_names_where_it_stands(home, environ, options, said):
    with pytest.raises(ConfigError, match=said):
        load(home, environ, **options)


# ---- servers of this machine ----------------------------------------------------------------------------------------


@pytest.fixture
def local(monkeypatch):
    """A server in the place of Ollama's."""
    with scripted.Server([], models=("the-first", "the-second")) as server:
        monkeypatch.setitem(known.PROVIDERS, "ollama", known.Known("ollama", server.base_url))
        yield server


def test_nothing_chosen_takes_a_local_server_that_answers_and_its_first_model(home, local):
    settings = config.load(home, Options(), {})
    assert place(settings) == (local.base_url, "the-first", None)
    assert settings.connection.provider == "ollama"
    config.require_key(settings)


def test_a_key_comes_before_a_local_server_and_not_asking_before_both(home, local):
    assert config.load(home, Options(), {"GROQ_API_KEY": "g"}).connection.provider == "groq"
    assert load(home).connection.kind == "demo"


def test_a_local_provider_that_does_not_answer_keeps_a_name_for_its_model(home, monkeypatch):
    monkeypatch.setitem(known.PROVIDERS, "vllm", known.Known("vllm", "http://127.0.0.1:9/v1"))
    assert config.load(home, Options(provider="vllm"), {}).model == "default"


def test_a_local_server_gets_more_time(home):
    assert load(home, provider="ollama").connection.read_timeout_s == 600
    assert load(home, provider="openai").connection.read_timeout_s == 120
    write(home.config, {"read_timeout_s": 7})
    assert load(home, provider="openai").connection.read_timeout_s == 7


def test_a_server_that_is_not_asked_hears_nothing(home, local):
    settings = config.load(home, Options(base_url=local.base_url, model="m"), {})
    assert (settings.model, settings.context_assumed) == ("m", True)
    assert local.asked == []


def test_a_port_that_accepts_and_says_nothing_costs_no_more_than_the_deadline(home, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        for id in known.PROBED:
            monkeypatch.setitem(known.PROVIDERS, id, known.Known(id, url))
        assert config.load(home, Options(), {}).connection.kind == "demo"

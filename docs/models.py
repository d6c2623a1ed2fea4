"""Models: makes `cass/data/models.json`, what is known about each model, from the data in a wheel of litellm.

    pip download --no-deps litellm && python docs/models.py litellm-*.whl

Facts and prices go stale: make the file anew now and then, look at the difference, run the tests. Source of the data:
https://github.com/BerriAI/litellm (MIT; its notice is kept in ``cass/data/LICENSE.litellm``).
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "cass" / "data" / "models.json"
DATA = "litellm/model_prices_and_context_window_backup.json"

PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "gemini",
    "fireworks_ai": "fireworks",
    "deepseek": "deepseek",
    "moonshot": "kimi",
    "groq": "groq",
    "mistral": "mistral",
    "xai": "xai",
    "together_ai": "together",
    "cerebras": "cerebras",
    "dashscope": "dashscope",
    "deepinfra": "deepinfra",
    "minimax": "minimax",
    "sambanova": "sambanova",
    "zai": "zai",
    "nebius": "nebius",
    "baseten": "baseten",
}
"""Litellm's name of a provider: ours. Those without a row in `cass.known` are reached through a base URL."""

NO_CHAT = re.compile(r"^ft:|audio|image|-tts|robotics|container|deep-research|/omni-|voxtral|guard|ocr|^together-ai-")
"""Fine-tuned models have names of their own; the others are not for text."""
DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as opened:
        models = json.loads(opened.read(DATA))
    version = Path(wheel).name.split("-")[1]
    rows: dict[str, dict[str, list[Any]]] = {}
    for name, said in models.items():
        provider = PROVIDERS.get(said.get("litellm_provider", ""))
        if provider and said.get("mode") in ("chat", "responses") and not NO_CHAT.search(name):
            id = name.removeprefix(said["litellm_provider"] + "/")
            row = facts(said)
            if row[0] and not (provider == "fireworks" and "/" not in id):  # a short name, for litellm alone
                rows.setdefault(provider, {})[id] = row
    TARGET.write_text(written(version, {provider: distinct(rows[provider]) for provider in PROVIDERS.values()}))


def distinct(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Those that a look-up would not find under their name without its date."""
    return {id: row for id, row in sorted(rows.items()) if row != rows.get(DATED.sub("", id)) or not DATED.search(id)}


def facts(said: dict[str, Any]) -> list[Any]:
    """One row, as `cass.models` reads it."""
    flags = {True: "t", False: "n"}.get(said.get("supports_function_calling"), "")
    flags += "r" if said.get("supports_reasoning") else ""
    flags += {True: "v", False: "b"}.get(said.get("supports_vision"), "")
    row = [said.get("max_input_tokens"), said.get("max_output_tokens"), flags, *prices(said, "")]
    thresholds = {
        int(found[1]) for key in said if (found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))
    }
    row += [[size * 1000, *prices(said, f"_above_{size}k_tokens")] for size in sorted(thresholds)]
    for tier in said.get("tiered_pricing", ()):
        if "range" in tier and tier["range"][0] == 0:
            row[3:7] = prices(tier, "")
        elif "range" in tier:
            row.append([int(tier["range"][0]), *prices(tier, "")])
    while row[-1] is None:
        row.pop()
    return row


def prices(said: dict[str, Any], tier: str) -> list[float | None]:
    """USD for a million tokens: input, output, read from a cache, written to it."""
    names = (
        "input_cost_per_token",
        "output_cost_per_token",
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    )
    return [short(said.get(name + tier)) for name in names]


def short(price: float | None) -> float | None:
    number = None if price is None else float(f"{price * 1_000_000:.6g}")
    return int(number) if number is not None and number == int(number) else number


def written(version: str, rows: dict[str, dict[str, list[Any]]]) -> str:
    """One model a line, so that a difference can be read."""
    dump = lambda value: json.dumps(value, separators=(",", ":"))  # noqa: E731
    blocks = [
        f"{dump(provider)}:{{\n" + ",\n".join(f"{dump(id)}:{dump(row)}" for id, row in rows[provider].items()) + "\n}"
        for provider in rows
    ]
    return f'{{"source":"litellm {version} (MIT, see LICENSE.litellm)","models":{{\n' + ",\n".join(blocks) + "\n}}\n"


if __name__ == "__main__":
    main(sys.argv[1])

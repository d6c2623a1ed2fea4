"""Tries: when a request that failed is made again, after how long, and how much shorter."""

import random
from dataclasses import replace

from cass.desk import Desk
from cass.errors import ProviderError
from cass.providers import failures
from cass.records import Notice

RETRIES = 4
FIRST_WAIT_S = 0.5
"""Doubled with every retry, plus up to a quarter at random so that many chats do not come back at once."""
LONGEST_WAIT_S = 60.0
"""A server that asks for more is not waited for: the turn fails and says how long it wanted."""
SHRINK = 0.7
"""Of a request that was too long, where the provider did not say how long it may be."""
LARGEST_DENSITY = 4.0
"""Tokens for an estimated one: no tokenizer makes more than one of a byte."""


def wait(error: ProviderError, retry: int, cuts: int) -> tuple[float, str]:
    """Seconds before the next try, and what to say meanwhile. Raises `error`, with why there is none.

    `retry`: how many there were; `cuts`: tries that broke off in the middle of an answer, of which one is made good:
    each costs what was written until then.
    """
    if not error.transient:
        raise error
    if cuts > 1:
        raise replace(error, message=f"{error.message}; given up, as it broke off {cuts} times") from error
    if error.retry_after is not None and error.retry_after > LONGEST_WAIT_S:
        text = f"{error.message}; the server asks to wait {error.retry_after:.0f} s"
        raise replace(error, message=text) from error
    if retry == RETRIES:
        raise replace(error, message=f"{error.message}; given up after {RETRIES + 1} tries") from error
    seconds = max(FIRST_WAIT_S * (1 << retry) * random.uniform(1, 1.25), error.retry_after or 0)
    return seconds, f"again in {seconds:.2g} s, {retry + 1} of {RETRIES}: {error.message}"


def shorten(desk: Desk, error: ProviderError, weight: int) -> Notice:
    """Learn from a request of `weight` estimated tokens that was too long, so that the next one is shorter."""
    if sizes := failures.sizes(error.message):
        desk.context_limit = min(desk.context_limit, sizes.limit)
        desk.density = min(max(desk.density, sizes.asked / max(weight, 1)), LARGEST_DENSITY)
        desk.max_tokens = min(desk.max_tokens, max(desk.context_limit // 4, 1))
    else:
        room = int(weight * SHRINK)
        desk.context_limit = room + min(desk.max_tokens, room)
    return Notice(
        level="warning",
        text=f"the request was too long ({error.message}); from now on {desk.model} is taken to have a context of "
        f'{desk.context_limit:,} tokens ("context_length" in models.json says it for good)',
    )

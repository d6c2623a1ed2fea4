"""Bill: what the requests of a run have cost, and whether another one may be made."""

from dataclasses import dataclass, field, replace

from cass.amounts import money
from cass.errors import CassError
from cass.models import PER, Facts
from cass.records import Assistant, Usage


def cost(usage: Usage, facts: Facts) -> float | None:
    """USD that one request costs; None where its model's prices are not known and its provider said nothing."""
    if usage.cost is not None:
        return usage.cost
    fitting = [prices for least, prices in facts.prices if usage.input > least or not least]
    if not fitting:
        return None
    price = fitting[-1]
    fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    total = fresh * price.input + usage.cache_read * read + usage.cache_write * write + usage.output * price.output
    return round(total / PER, 9)


@dataclass
class Bill:
    facts: Facts = field(default_factory=Facts)
    """Of the model that is asked."""
    limit: float | None = None
    """USD that the requests may come to; None: no limit."""
    usage: Usage = Usage()
    """What all of them have used."""
    unpriced: str = ""
    """A model whose price was not known."""

    def charge(self, answer: Assistant) -> Assistant:
        """Add what a request used; return its answer with what it cost."""
        usage = answer.usage or Usage()
        usage = replace(usage, cost=cost(usage, self.facts))
        self.usage += usage
        if usage.cost is None:
            self.unpriced = answer.model
        return answer if answer.usage is None else replace(answer, usage=usage)

    def add(self, spent: float) -> None:
        """What an agent's chat has cost."""
        self.usage += Usage(cost=spent)

    def left(self) -> float | None:
        """USD that may still be spent; None: any number of them."""
        return None if self.limit is None else self.limit - (self.usage.cost or 0)

    def check(self) -> None:
        """Raise CassError where no further request may be made."""
        if self.limit is None:
            return
        if self.unpriced:
            cure = 'say "prices" for it in models.json, or leave --max-cost out'
            raise CassError(f"stopped: what {self.unpriced} costs is not known, --max-cost cannot hold; {cure}")
        if (spent := self.usage.cost or 0) >= self.limit:
            raise CassError(f"stopped: {money(spent)} spent of {money(self.limit)} (--max-cost)")

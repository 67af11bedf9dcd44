"""A toy aggregation in a file of its own: sums by megaphone, which hide nothing and say so in their own words."""

from collections.abc import Iterator
from contextlib import contextmanager

from protocols.bundles import Aggregation, ServerReads
from protocols.foundation.disclosure import Disclosure, Learned, Subject
from protocols.registry import AGGREGATIONS, PLAINLY_COUNTED
from protocols.sums.plain import PLAIN_INPUT, PlainSumClient, PlainSumServer


class ToySumClient(PlainSumClient):
    """Shouts its vector."""


class ToySumServer(PlainSumServer):
    """Listens."""


TOY = Aggregation(
    name="megaphone",
    client=lambda keys: ToySumClient(),
    server=lambda keys, least: ToySumServer(least),
    count=PLAINLY_COUNTED,
    server_reads=ServerReads.CONTRIBUTIONS,
    needs_keys=False,
    stands_against_active=False,
    disclosure=Disclosure(
        title="sums by megaphone",
        place="tests/support/toy_aggregation",
        choice="clients shout their vectors across the yard",
        in_brief="aggregation was by megaphone: the server heard every client's {shared} rows across the yard",
        learned={
            Subject.ROWS: Learned("all that was shouted", "the mean rows, from the echo"),
            Subject.HOLDERS: Learned("who shouted which row"),
            Subject.METRICS: Learned("every shouted number"),
            Subject.PARTICIPATION: Learned("who shouted"),
        },
        against="the deaf",
        with_a_client="nothing: the server hears all by itself",
        assumes="good lungs",
        not_covered="any privacy",
        fields=PLAIN_INPUT,
    ),
)


@contextmanager
def registered() -> Iterator[Aggregation]:
    """The toy among the aggregations, for as long as a test needs it."""
    AGGREGATIONS.register(TOY)
    try:
        yield TOY
    finally:
        AGGREGATIONS.unregister(TOY.name)

"""What the settings of a run say about questions over it; free of torch, since a server reads them too."""

from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.queries.shapes import Score, encoder_kind

_ENTITIES = "entity"


def query_settings(config: RunConfig) -> QueryConfig:
    """`UserError` for a run that has trained on triples."""
    if config.queries is None:
        how = f"{command('launch.fedcqa')} trains one"
        raise UserError(f"a run with --strategy {config.strategy} has no model of queries; {how}")
    return config.queries


def shared_block(config: RunConfig) -> str:
    """The aligned block with entities in it. `UserError` for a run without: nobody could tell which answers are one."""
    strategy = STRATEGIES[config.strategy]
    if strategy.shared is None or _ENTITIES not in strategy.shared:
        raise UserError(f"a run with --strategy {config.strategy} has no entities in common to answer with")
    return strategy.shared


def score_of(config: RunConfig) -> Score:
    """How a run's model scores, the usual way resolved."""
    queries = query_settings(config)
    return encoder_kind(queries.encoder).score if queries.score == "usual" else queries.score

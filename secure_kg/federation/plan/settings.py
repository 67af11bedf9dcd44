"""Settings of a run: typed, checked when made, saved with the results. Free of torch: the server reads them too."""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import tomli_w

from protocols.alignment.psu.attempts import MAX_BOUND
from protocols.bundles import Aggregation, Alignment
from protocols.foundation.errors import ProtocolError
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from protocols.sums.secagg.params import SumParameters, ThreatModel
from protocols.sums.secagg.vectors import parameters_for
from protocols.sums.travelling import RING_BITS
from secure_kg.data.partition import RULES, By
from secure_kg.data.readers.interface import Literals, Reading
from secure_kg.federation.plan.count_plan import require_room
from secure_kg.federation.plan.private_plan import require_private
from secure_kg.federation.plan.strategies import STRATEGIES, require_network
from secure_kg.federation.plan.typed_fields import check_types, flag
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import toml_of
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kinds import network_kind
from secure_kg.models.shapes import entity_width, relation_width
from secure_kg.privacy.run_config import PrivacyConfig

Adversary = Literal["semi-honest", "active"]
Device = Literal["auto", "cpu", "cuda"]

SETUP_SECONDS: Final = 600.0
"""For starting up: a client imports torch and reads or downloads its data, which is no sign of trouble."""

_PARTS: Final = ("training", "queries", "network", "privacy")  # tables of their own in a file
# These concern one party only; parties of one job may differ in them, and they do not change the result.
_LOCAL_FIELDS: Final = frozenset(
    {"client_data", "columns", "device", "deadline", "grace", "transcript", "checkpoint_every", "keys"}
)
FORMAT: Final = 4
"""4: keys of sums may be advertised ahead, states come with the shares, a count of holders stands. 3: the settings of
each session are on record. 2: results hold Hits@5 and ranks. 1: they do not; files of that time do not say so."""
_FINE: Final = 32
"""Bits of a ring below which only rows of graphs are shared."""
_LEAST: Final = {"rounds": 1, "eval_every": 1, "patience": 1, "min_participants": 2, "min_holders": 1}
# The share of clients that may drop out in a sum unless told otherwise; an active server leaves room for fewer.
_USUAL_DROPOUT: Final = {"semi-honest": 0.4, "active": 0.25}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Settings of one run. Defaults are those of FedR, appendix B; `presets` adapts them to small graphs."""

    dataset: str = "umls"
    by: By = "triples"
    client_data: str | None = None
    literals: Literals = "drop"
    columns: str = ""
    """Of tables: names or numbers of the columns of head, relation and tail. Empty: the header says."""
    allow_leaky_split: bool = False
    clients: int | None = None
    """How many there are; each process fills it in from the ranks it was started with."""
    strategy: str = "fedr"
    aggregation: str = "secagg"
    """A name in `protocols.registry.AGGREGATIONS`."""
    alignment: str = "psu"
    """A name in `protocols.registry.ALIGNMENTS`."""
    reveal_names: bool = False
    union_bound: int | None = None
    """None: what the strategy usually needs."""
    min_holders: int | None = None
    """None: two more than clients are declared corrupt (`least_holders`)."""
    rounds: int = 300
    client_fraction: float = 1.0
    eval_every: int = 5
    patience: int = 5
    ring_bits: int = 32
    clip: float = 16.0
    min_participants: int = 2
    adversary: Adversary = "semi-honest"
    max_corrupt: float = 0.25
    max_dropout: float | None = None
    """None: 40 % (against an active server 25 %), or what `min_participants` leaves room for."""
    keys: str | None = None
    seed: int = 0
    format: int = FORMAT
    """Version of what parties say to each other in a run; an audit reads older ones, a job runs the newest."""
    checkpoint_every: int = 10
    transcript: bool = False
    device: Device = "auto"
    deadline: float = 600.0
    grace: float = 10.0
    training: TrainingConfig = field(default_factory=TrainingConfig)
    queries: QueryConfig | None = None
    """Of strategies that train on logical queries; `training` has no meaning for them. None for all others."""
    network: NetworkConfig | None = None
    """Of graph networks; `training` has no meaning for them. None for models of embeddings, and of queries."""
    privacy: PrivacyConfig | None = None
    """Of differentially private training. None: there is none."""

    def __post_init__(self) -> None:
        choices: dict[str, tuple[object, ...]] = {
            "by": RULES,
            "strategy": tuple(STRATEGIES),
            "aggregation": tuple(AGGREGATIONS),
            "alignment": tuple(ALIGNMENTS),
            "adversary": get_args(Adversary),
            "device": get_args(Device),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UserError(f"{flag(name)} must be one of {', '.join(map(str, allowed))}")
        if STRATEGIES[self.strategy].learner.of_queries:
            if self.queries is None:
                object.__setattr__(self, "queries", QueryConfig())
        elif self.queries is not None:
            raise UserError(f"settings of queries: --strategy {self.strategy} trains on triples")
        if not 1 <= self.format <= FORMAT:
            raise UserError(f"a run of format {self.format}; this version knows 1 to {FORMAT}")
        pools = STRATEGIES[self.strategy].pools
        for name, usual in _LEAST.items():
            least = 1 if pools else usual  # pooled, there is one party, and nothing that a sum of two would hide
            if (value := getattr(self, name)) is not None and value < least:
                raise UserError(f"{flag(name)} must be at least {least}")
        for name in ("seed", "checkpoint_every"):
            if getattr(self, name) < 0:
                raise UserError(f"{flag(name)} must not be negative")
        if not RING_BITS[0] <= self.ring_bits <= RING_BITS[1]:
            raise UserError(f"--ring-bits must lie between {RING_BITS[0]} and {RING_BITS[1]}")
        if self.ring_bits < _FINE and (self.privacy is not None or self.queries is not None):
            why = "--dp: noise has no room" if self.queries is None else "networks that are shared need finer values"
            raise UserError(f"--ring-bits {self.ring_bits}: {why} below {_FINE} bits")
        if not 0 < self.client_fraction <= 1:
            raise UserError("--client-fraction must lie above 0 and at most at 1")
        for name in ("max_corrupt", "max_dropout"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise UserError(f"{flag(name)} must be at least 0 and below 1")
        if self.union_bound is not None and not 1 <= self.union_bound <= MAX_BOUND:
            raise UserError(f"--union-bound must lie between 1 and {MAX_BOUND}")
        if self.reveal_names and STRATEGIES[self.strategy].shared is None:
            raise UserError(f"--reveal-names: under --strategy {self.strategy} no names are aligned")
        if pools and self.sum_protocol.hides_contributions:
            raise UserError(
                f"--aggregation {self.aggregation}: under --strategy {self.strategy} all triples are in one place, "
                "and no sum can hide them"
            )
        if pools and self.client_fraction < 1:
            raise UserError(f"--client-fraction: under --strategy {self.strategy} no clients are drawn")
        Reading(self.literals, self.columns)  # refuses what cannot be read by
        self._check_protocols()
        self._check_training()
        if self.adversary == "active" and self.keys is None:
            keygen = command("launch.keygen")
            raise UserError(f"--adversary active needs --keys DIR: identities made with {keygen}")
        if self.adversary != "active" and self.keys is not None:
            raise UserError("--keys is for --adversary active: nobody signs anything otherwise")
        for name in ("clip", "deadline", "grace"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"{flag(name)} must be a positive number")

    def _check_protocols(self) -> None:
        """Refuse what the chosen protocols cannot do."""
        alignment = self.alignment_protocol
        if self.reveal_names and alignment.revealing is None:
            usual = " or ".join(name for name, one in ALIGNMENTS.items() if one.revealing is not None)
            told = "the server is told names anyway" if alignment.server_reads_names else "it is told none"
            raise UserError(f"--reveal-names is for --alignment {usual}: in the {self.alignment} one {told}")
        self.require_standing(self.aggregation)

    def _check_training(self) -> None:
        """Refuse what a strategy cannot train."""
        strategy, training, network = STRATEGIES[self.strategy], self.training, self.network
        widths = entity_width(training.model, training.dim), relation_width(training.model, training.dim)
        if network is not None:
            require_network(self, strategy)
            widths = network.widths
        if not strategy.learner.of_queries and strategy.shared == "entity and relation" and widths[0] != widths[1]:
            raise UserError(f"--strategy {self.strategy}: rows of {self.model} differ in width, one block has one")
        if self.privacy is not None:
            require_private(self, strategy)
            require_room(self, strategy)

    def require_standing(self, aggregation: str, block: str | None = None) -> None:
        """Refuse sums that do not stand against the declared adversary. `block`: whose sums; None: the run's own."""
        sums = AGGREGATIONS[aggregation]
        if self.adversary != "active" or sums.stands_against_active:
            return
        usual = " or ".join(name for name, one in AGGREGATIONS.items() if one.stands_against_active)
        lacks = "does not stand against such a server" if sums.hides_contributions else "protects nothing"
        needs = f"--aggregation {usual}" if block is None else f"{usual} sums of block {block}"
        raise UserError(f"--adversary active needs {needs}: the {aggregation} sum {lacks}")

    @property
    def sum_protocol(self) -> Aggregation:
        """How contributions are added up."""
        return AGGREGATIONS[self.aggregation]

    @property
    def alignment_protocol(self) -> Alignment:
        """How names are aligned."""
        return ALIGNMENTS[self.alignment]

    @property
    def first_union_bound(self) -> int:
        """How large a union the first attempt of the private set union has room for."""
        return self.union_bound if self.union_bound is not None else STRATEGIES[self.strategy].union_bound

    @property
    def corrupt_clients(self) -> int:
        """How many of all clients are declared to be on the server's side. The plain twin keeps to the same bound."""
        return 0 if self.clients is None else self.threat_model.corrupt_of(self.clients)

    @property
    def least_holders(self) -> int:
        """How many holders a row must have to be added up.

        Unless told otherwise so many that two of them are honest: of a row with one honest holder the server and the
        corrupt ones know all but that holder's part, and subtract it. In a private run everybody adds to every row.
        """
        if self.privacy is not None:
            return 1
        return self.corrupt_clients + 2 if self.min_holders is None else self.min_holders

    def too_few_drawn(self, drawn: int) -> str:
        """Why no row can be added up if so many clients are drawn for a round, in one line."""
        change = "lower --max-corrupt, or give --min-holders" if self.min_holders is None else "lower --min-holders"
        return (
            f"--min-holders {self.least_holders}: only {drawn} clients take part in a round; "
            f"raise --client-fraction or {change}"
        )

    @property
    def send_seconds(self) -> float:
        """How long the server waits for a client to take an earlier message before it sends the next one.

        Where rows are shared a client is sent something when it waits for it. Alone it may train for rounds on end.
        """
        shared = STRATEGIES[self.strategy].shared is not None
        return min(self.deadline, 2 * self.grace) if shared else self.deadline * self.eval_every

    @property
    def threat_model(self) -> ThreatModel:
        """What is declared: the same for every sum of the run."""
        dropout = self.max_dropout
        if dropout is None:
            dropout = _USUAL_DROPOUT[self.adversary]
            if self.clients is not None and dropout * self.clients > self.clients - self.min_participants:
                dropout = max(0, self.clients - self.min_participants) / self.clients
        return ThreatModel(self.max_corrupt, dropout, self.adversary)

    def sum_parameters(self, participants: int, clients: int) -> SumParameters:
        """Graph and threshold of a sum of so many of the clients; `UserError` where nothing can be justified."""
        try:
            return parameters_for(participants, clients, self.threat_model, self.min_participants)
        except ProtocolError as problem:
            options = "--max-corrupt, --max-dropout, --min-participants, --client-fraction"
            raise UserError(f"{options}: {problem}") from None

    def digest(self) -> bytes:
        """A fingerprint of everything the parties of a job must agree on."""
        agreed = {name: value for name, value in dataclasses.asdict(self).items() if name not in _LOCAL_FIELDS}
        agreed["min_holders"] = self.least_holders  # said aloud or not
        if self.format == 1:  # which did not say so
            del agreed["format"]
        if self.literals == "drop":
            del agreed["literals"]
        if self.privacy is None:
            del agreed["privacy"]  # so runs without it agree as they did before there was any
        for name in self._unused:  # so runs agree as they did before there were others
            del agreed[name]
        return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).digest()

    def told(self) -> dict[str, Any]:
        """Every setting, the resolved ones too. What was not given and has no value, or no meaning, is left out."""
        settings = dataclasses.asdict(self, dict_factory=_given).items()
        return {name: value for name, value in settings if name not in self._unused}

    def to_toml(self) -> str:
        return tomli_w.dumps(self.told())

    @property
    def _unused(self) -> frozenset[str]:
        """Settings of kinds of training that the run does not do."""
        if self.queries is not None:
            return frozenset({"training", "network"})
        return frozenset({"queries", "network" if self.network is None else "training"})

    @property
    def trained(self) -> TrainingConfig | NetworkConfig | QueryConfig:
        """Settings of the training that the run does."""
        return self.network or self.queries or self.training

    @property
    def model(self) -> str:
        """What is trained, in a word."""
        if self.privacy is not None and self.privacy.counts:
            return "counts"
        return self.queries.encoder if self.queries is not None else (self.network or self.training).model

    @property
    def dim(self) -> int:
        """The dimension of what is trained."""
        if self.privacy is not None and self.privacy.counts:
            return self.privacy.dp_count_width
        return self.trained.dim

    @classmethod
    def from_toml(cls, text: str, where: str) -> "RunConfig":
        """Strict: an unknown or mistyped key is an error, for a silently ignored setting changes a result."""
        try:
            values = toml_of(text)
        except ValueError:
            raise UserError(f"{where}: not a TOML file") from None
        values.setdefault("format", 1)
        parts = {name: values.pop(name, None) for name in _PARTS}
        owners: dict[str, type[Any]] = {"training": TrainingConfig, "queries": QueryConfig, "privacy": PrivacyConfig}
        for name, part in parts.items():
            if part is not None and not isinstance(part, dict):
                raise UserError(f"{where}: '{name}' must be a table")
        check_types(cls, values, where, apart=_PARTS)
        if parts["network"] is not None:
            if parts["training"] is not None:
                raise UserError(f"{where}: 'training' has no meaning beside 'network'")
            owners["network"] = network_kind(str(parts["network"].get("model"))).settings
        made = {}
        for name, owner in owners.items():
            if (part := parts[name]) is not None:
                check_types(owner, part, where)
                made[name] = owner(**part)
        return cls(**values, **made)


def _given(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in entries if value is not None}

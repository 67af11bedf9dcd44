"""What `--help` says of the settings of differentially private training, and what must not be combined with them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from secure_kg.federation.plan.count_plan import COUNT_ROUNDS
from secure_kg.federation.plan.settings import flag
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.privacy.run_config import MECHANISMS, OWN_OPTIONS, PrivacyConfig

TITLE: Final = "differential privacy (docs/privacy.md)"
PRIVACY_OPTIONS: Final[dict[str, str]] = {
    "dp": "differential privacy of single triples; needs --epsilon and --delta. sgd: noise on clipped sums of "
    "gradients, one step per round; adafest: the same in rows that each client chooses by noised counts; flames: in "
    "rows that it chooses by gaps between norms; counts: one noised table of tails by relation, in one round and "
    "without training, the control that all others have to beat. --preset auto is private then",
    "epsilon": "the budget of the whole run: the smaller, the less can be told from all that is released",
    "delta": "the probability with which epsilon may fail; well below 1 over the number of triples",
    "dp_clip": "the gradient of a triple is clipped to this length, over all rows together",
    "dp_step": "size of the first step, per unit of the noised sum over all clients; 570 over the number of all train "
    "triples is a good guess, if that number is public",
    "dp_last_step": "fraction of the step that is left in the last round; it falls linearly",
    "dp_sampling": "probability of a triple to be in a round's sample; 1: full batches, which spend a budget best",
    "dp_noise": "shares: clients add parts that are enough together, whoever of --max-corrupt and --max-dropout is "
    "missing; full: every client adds all of it by itself; auto: shares, but full for adafest and flames",
    "dp_row_share": "adafest: part of a step's cost that the choice of rows takes; the rest is for the gradients",
    "dp_row_threshold": "adafest: a row is chosen if its noised count is so many deviations of that noise or more; 0: "
    "also half of the rows that no triple touches",
    "dp_count_width": "counts: columns of the table, one for each hash of a relation's name; of m relations about m²/2 "
    "over this number of pairs meet in one column, and are counted together",
    "dp_count_threshold": "counts: cells below so many deviations of their noise count as empty",
    "public_evaluation": "declare valid and test triples public: allows validation, early stopping and the choice of "
    "the best round; without it the last round is the model",
    "dp_tuned_on": "the data on which these settings were chosen, for the privacy statement",
}
FIELDS: Final = frozenset(entry.name for entry in dataclasses.fields(PrivacyConfig))
_OF_VALIDATION: Final = ("patience", "eval_every")
_OF_TRAINING: Final = tuple(
    entry.name for entry in dataclasses.fields(TrainingConfig) if entry.name != "eval_megabytes"
)


def check_privacy(given: Mapping[str, Any]) -> None:
    """`given`: options as they were typed. `UserError` for those that have no meaning beside the others."""
    alone = [name for name in PRIVACY_OPTIONS if name in given and name != "dp"]
    if "dp" not in given:
        if alone:
            owners = OWN_OPTIONS.get(alone[0], MECHANISMS)
            raise UserError(f"{flag(alone[0])} is for private training: give --dp {' or '.join(owners)}")
        return
    for name, mechanisms in OWN_OPTIONS.items():
        if name in given and given["dp"] not in mechanisms:
            raise UserError(f"{flag(name)} is for --dp {' or '.join(mechanisms)}, not for {given['dp']}")
    if given["dp"] == "counts":
        for name in (*_OF_TRAINING, "preset", "clip"):
            if name in given:
                raise UserError(f"{flag(name)}: --dp counts trains nothing, and has no such setting")
    if not given.get("public_evaluation", False):
        for name in _OF_VALIDATION:
            if name in given:
                raise UserError(f"{flag(name)}: under --dp validation needs --public-evaluation")


def fixed_by(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a mechanism leaves no choice of."""
    return {"rounds": COUNT_ROUNDS} if given.get("dp") == "counts" else {}


def privacy_of(values: Mapping[str, Any]) -> PrivacyConfig | None:
    """The settings among all values by name; None if nothing asks for private training."""
    own = {name: value for name, value in values.items() if name in FIELDS}
    return PrivacyConfig(**own) if "dp" in own else None

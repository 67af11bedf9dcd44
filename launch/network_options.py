"""What `--help` says of the settings that only graph networks have. Those that they share with models of embeddings
stand there, with the defaults of those."""

import dataclasses
from typing import Any, Final

from secure_kg.federation.plan.by_name import OPTIONS
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.models.networks.kinds import NETWORKS

TITLE: Final = f"graph networks (--model {'|'.join(NETWORKS).lower()})"
NETWORK_OPTIONS: Final[dict[str, str]] = {
    "dropout": "share of the numbers that are dropped before they are compared with tails",
    "label_smoothing": "how far targets are moved towards all alike",
    "max_norm": "a step's gradient is cut to this length",
    "heads": "attention heads in each layer",
    "attention_dropout": "share of the weights of attention that are dropped, and of numbers between the layers",
    "weight_decay": "of the encoder: L2 regularisation, within the gradient",
    "two_hop": "at most so many edges of two hops lead to an entity, drawn if there are more; 0: none",
    "final_rows": "rows that come out of the encoder: whole, of all edges; last-batch: as the last batch leaves them, "
    "with dropout, and attention at its tails alone, which is how FedR's code trains and what it shares",
    "filters": "of ConvKB, the decoder; each is 1 × 3",
    "decoder_epochs": "local epochs of the decoder, before an evaluation; those of the encoder, in every round, are "
    "--local-epochs: the paper takes 150 and 500, and finds few epochs bad",
    "decoder_batch_size": "triples in a step of the decoder",
    "decoder_negatives": "of the decoder, for each triple; half of them heads",
    "decoder_halving": "epochs of the decoder after which its learning rate is halved",
    "decoder_weight_decay": "of the decoder, as that of the encoder",
    "means_loaded": "when the means of shared rows come into a client's model: every-round, and training goes on from "
    "them; for-evaluation: only when it is evaluated, as in FedR's code, and training then goes on from them",
    "moments": "Adam's at the start of a round: anew, as FedR's code has it in a federation; kept, as for Local",
}


def network_fields() -> "dict[str, dataclasses.Field[Any]]":
    """The settings that some network has and models of embeddings have not, by name."""
    return {
        entry.name: entry
        for kind in NETWORKS.values()
        for entry in dataclasses.fields(kind.settings)
        if entry.name not in OPTIONS[None]
    }


def usual_settings() -> str:
    """Defaults of each network that are not those of models of embeddings, in words for `--help`."""
    shared = sorted(OPTIONS[None] - {"model"})
    told = []
    for kind in NETWORKS.values():
        usual = kind.settings()
        own = [f"{flag(name)} {getattr(usual, name):g}" for name in shared if name in kind.options]
        told.append(f"{kind.name.lower()} takes {' '.join(own)}")
    return "; ".join(told)

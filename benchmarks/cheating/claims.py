"""The words of SECURITY.md that are under attack, and findings of an audit that name several of the attacks."""

from typing import Final

SUM: Final = "the sum over the survivors and who they are"
MODELS: Final = "against a server that sends different global models, or different lists of the union"
RESUMED: Final = "when a broken job is resumed and repeats rounds with the same inputs"
KEYS: Final = "against a server that replaces or withholds keys, replays old messages"
SURVIVORS: Final = "tells clients different things about who survived"
HOLDERS: Final = "No row is ever added up of fewer than"
LIE: Final = "A server that lies alike to everybody"
ALIGNMENT: Final = "Alignment under an active server"
FEW: Final = "or leave too few survivors end its part in the sum"
STOPPING: Final = "Early stopping."
FRAMES: Final = "Frames are bounded per kind and senders take turns"
CLAIMS: Final = "Clients that claim rows they do not have"
HONEST: Final = "What is claimed"

TABLES: Final = ("different-global-models", "false-totals")
LEFT_OUT: Final = ("answers-ignored", "same-sum-over-other-clients", "evaluated-on-demand")

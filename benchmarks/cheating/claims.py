"""The words of SECURITY.md that are under attack, and findings of an audit that name several of the attacks."""

from typing import Final

SUM: Final = "the sum over the survivors and who they are"
MODELS: Final = "clients that a server has sent different tables, totals, lists of the union or greetings"
RESUMED: Final = "The same secret is not summed over different clients."
KEYS: Final = "a server that replaces, withholds or replays keys"
SURVIVORS: Final = "tells clients different things about who survived"
HOLDERS: Final = "No row is ever added up of fewer than"
LIE: Final = "A server that lies alike to everybody"
ALIGNMENT: Final = "Alignment under an active server"
FEW: Final = "or leave too few survivors end its part in the sum"
STOPPING: Final = "Early stopping."
FRAMES: Final = "A party neither unpacks nor keeps a frame larger than the tasks of its session call for."
CLAIMS: Final = "Clients that claim names they do not have."
SECRET: Final = "the server alone learns nothing of any sum"
COLLUDER: Final = "The vectors of the other clients stay protected as above"
RECEIPTS: Final = "Receipts that end early."
APPLIED: Final = "All clients of a sum have applied the same."
HONEST: Final = "What is claimed"

TABLES: Final = ("different-global-models", "false-totals")
LEFT_OUT: Final = ("answers-ignored", "same-sum-over-other-clients", "evaluated-on-demand")

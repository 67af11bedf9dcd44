"""The claims of SECURITY.md that are under attack, and findings of an audit that name several of the attacks."""

from typing import Final, NamedTuple


class Claim(NamedTuple):
    number: str
    """As in SECURITY.md."""
    says: str
    """Words of that claim."""


Claims = tuple[Claim, ...]
"""What an attack is against, the claim that it is after first."""

SUM: Final = (Claim("S1", "the sum over the survivors and who they are, and nothing else"),)
OWN_KEYS: Final = (Claim("S2", "Every sum has mask keys and seeds of its own."),)
EXACT: Final = (Claim("S3", "A sum is that of the survivors' fixed-point vectors to the last bit"),)
MODELS: Final = (Claim("S4", "different tables, totals, lists of the union or greetings"),)
APPLIED: Final = (Claim("S4", "All clients of a sum have applied the same."),)
AGAIN: Final = (Claim("S5", "The same secret is not summed over different clients."),)
ORGANISATIONS: Final = (Claim("S5", "where clients have identities, the same survivors are the same organisations"),)
DISPUTES: Final = (
    Claim("S10", "A member whose shares do not open, or that says so falsely, costs the others a few sums"),
)
BORNE: Final = (Claim("S10", "A client ends its part after five such sums in a row"),)
ONCE: Final = (Claim("S6", "One evaluation per trained round"),)
LOSS: Final = (Claim("S6", "A loss is told only of a training whose rows were added up"),)
KEYS: Final = (Claim("S7", "a server that replaces, withholds or replays keys"),)
SURVIVORS: Final = (Claim("S7", "tells clients different things about who survived"),)
FEW: Final = (Claim("S8", "or leave too few survivors end its part in the sum"),)
LISTS: Final = (Claim("S8", "It never gives both shares of a peer"),)
SECRET: Final = (Claim("S9", "the server alone learns nothing of any sum"),)
COLLUDER: Final = (Claim("S9", "The vectors of the other clients stay protected as above"),)
NAMES: Final = (Claim("N1", "the server alone learns how many different names there are"),)
ALONE: Final = (Claim("N2", "No client complains alone."),)
TABLES_SENT: Final = (Claim("N2", "A client sends at most three tables"),)
HOLDERS: Final = (Claim("N3", "No row is added up of fewer than"),)
COUNTED: Final = (Claim("N3", "a changed total is noticed with probability"),)
FIRST: Final = (Claim("N4", "First rows tell no names."),)
RECORD: Final = (Claim("A1", "What passed is on record."),)
LIE: Final = (Claim("A2", "A server that lies alike to everybody is found."),)
LEFT_UNDONE: Final = (Claim("A3", "What a server leaves undone is found."),)
NOT_FRAMED: Final = (Claim("A4", "What a client sends and an honest server drops accuses nobody."),)
PROGRAM: Final = (Claim("A5", "What the server's own program would not have said is found."),)
NO_WORDS: Final = (Claim("R1", "It takes no word of a sum of rows that it has not begun."),)
NEWS: Final = (Claim("S4", "goes on only after it was sent the result, or told that the sum was abandoned"),)
ONLY_MEANS: Final = (Claim("Q1", "the server learns nothing of queries, scores, holders and answers"),)
ONLY_ASKER: Final = (Claim("Q2", "A scorer answers what the asker has sealed for it, once."),)
ASKED_ALIKE: Final = (Claim("Q2", "Nor can the asker ask scorers different things"),)
SCORES_NOT_FRAMED: Final = (Claim("Q7", "Audits of score queries accuse no honest server."),)
SCORE_TOTALS: Final = (Claim("Q3", "A changed total of masked scores is noticed."),)
SCORES_AGAIN: Final = (Claim("Q4", "Means of one table are opened over one set of clients."),)
DEALT: Final = (Claim("Q5", "an audit deals again what the server has dealt"),)
MEANS: Final = (Claim("Q6", "No scorer helps to open the means of more queries than its budget."),)
FACTS_OF_ALL: Final = (Claim("Q8", "Exact answers are over all clients or over none."),)
STEP_TERMS: Final = (Claim("Q9", "answers only what the asker has sealed under the same terms"),)
STEP_REQUESTS: Final = (Claim("Q9", "passes on another request than the asker's"),)
LOOKUP_TOTALS: Final = (Claim("Q3", "It holds for lookups of vectors, which are masked scores"),)
NAME_TOTALS: Final = (Claim("Q3", "a changed total of names is read as names with probability"),)
LOOKUPS_AGAIN: Final = (Claim("Q4", "they have one set together, for all steps, askers and sessions"),)
ATOMS: Final = (Claim("Q10", "No client helps to find more vectors of a model than its budget"),)
SILENCE: Final = (Claim("Q10", "nor follows a relation that it keeps to itself"),)
FRAMES: Final = (
    Claim("R1", "A party neither unpacks nor keeps a frame larger than the tasks of its session call for."),
)

TABLES: Final = ("different-global-models", "false-totals")
LEFT_OUT: Final = ("answers-ignored", "same-sum-over-other-clients", "evaluated-on-demand")

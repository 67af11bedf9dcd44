"""What `--help` says of the settings of differentially private training."""

from typing import Final

TITLE: Final = "differential privacy (docs/privacy.md)"
PRIVACY_OPTIONS: Final[dict[str, str]] = {
    "dp": "differential privacy of single triples; needs --epsilon and --delta. sgd: noise on clipped sums of "
    "gradients, one step per round; adafest: the same in rows that each client chooses by noised counts; flames: in "
    "rows that it chooses by gaps between norms; counts: one noised table of tails by relation, in one round and "
    "without training, the control that all others have to beat. --preset auto is private then",
    "epsilon": "the budget of the whole run: the smaller, the less can be told from all that is released",
    "delta": "the probability with which epsilon may fail; well below 1 over the number of triples",
    "dp_clip": "the gradient of a triple is clipped to this length, over all rows together",
    "dp_step": "size of the first step, per unit of the noised sum over all clients; the usual one is for some ten "
    "thousand triples and falls with the budget's noise; at epsilon 16, 570 over the number of all train triples is a "
    "good guess, if that number is public",
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

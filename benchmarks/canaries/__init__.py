"""An audit of private training by canaries: planted triples whose presence an attacker guesses from what is released.

| module | what |
|---|---|
| `planting` | canaries on rows of their own, drawn into the training triples by coins |
| `bounds` | the largest AUC that releases allow |
| `findings` | the three tests: canary AUC against the bound, noise of two steps, noise of two runs; and their power |
| `cases` | the code as it is and with each fault, and the test by which the fault has to be found |
| `audited` | all runs of all cases of one path through the code, and what was found |
| `watching`, `trainings` | the paths central, poisson and adafest: the attacker beside a training in one place |
| `insecure` | faults of those, each a small wrapper around the real code |
| `games` | the path flames: single steps in which one canary decides a test |
| `sessions`, `corrupt_view` | the paths federated and counts: real sessions, seen by the server and one client |
| `insecure_clients` | faults of those |
| `paths` | the paths by name |
"""

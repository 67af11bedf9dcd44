"""An audit of private training by canaries: planted triples whose presence an attacker guesses from what is released.

| module | what |
|---|---|
| `planting` | canaries on rows of their own, drawn into the training triples by coins |
| `watching` | the attacker beside a training: every noised sum, and the evidence for each canary |
| `insecure` | faults for the audit to find, each a small wrapper around the real code |
| `cases` | the code as it is and with each fault, and the test by which the fault has to be found |
| `findings` | the three tests: canary AUC against the accountant's bound, noise of two steps, noise of two runs |
"""

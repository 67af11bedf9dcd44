"""Sampled softmax over negatives that all queries of a step share.

The loss of a query with answer a is −log of e^{s(a)} / Σ_v e^{s(v)} over all entities. The sum over the entities that
are not a is estimated from those among m different negatives, uniformly drawn: each stands for (n − 1) / m' of them,
where m' is m, or m − 1 if a was drawn as well (the correction by log Q of Bengio and Senécal, 2008). The estimate has
no bias, and with m = n it is the softmax over all entities.

A negative may be another answer of the query. At 512 of 14,505 entities that is rare, and looking it up would cost more
than it gains.
"""

import math

import torch
from torch import Tensor


def sampled_softmax(positive: Tensor, negative: Tensor, own: Tensor, entities: int) -> Tensor:
    """The sum of losses, from scores [b] of answers and [b, m] of negatives.

    own [b, m] says where a negative is the answer. With a single entity there is nothing to choose between: no loss.
    """
    drawn = negative.shape[1] - own.sum(1)
    if not bool(drawn.any()):
        return 0 * positive.sum()
    weight = math.log(max(entities - 1, 1)) - drawn.clamp_min(1).log()
    others = negative.masked_fill(own, -math.inf).logsumexp(1) + weight
    return (torch.logaddexp(others, positive) - positive).sum()

"""Clipped sums of per-triple gradients in closed form, one module per step.

Parties:     one holder of triples, who computes; whoever sees the noised sums.
Unit:        one triple, add/remove neighbours. Entities, relations and the model before the step are public.
Reveals:     nothing by itself: a clipped sum is private until noise is added to it.
Assumes:     negatives drawn by the public seed from all public entities, the same for all triples of a step; IEEE 754,
             and matrix products that are sums of products in double precision, in any order.
Not covered: the number of triples of a batch and of clipped ones, which are returned for the holder alone.

What a triple adds to a sum must depend on that triple and on public values only. So there are no negatives from the
batch, no filter of false negatives by other triples, no batch normalisation: there is no parameter by which they could
be asked for.
"""

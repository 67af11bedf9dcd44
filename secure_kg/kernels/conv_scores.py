"""Scores of ConvKB and their gradients, without a [groups, b, candidates, filters, width] intermediate.

    out[u, i, j] = Σ_mk output_mk · max(0, fixed_mk[u, i] + mix_m · candidate_k[u, j])

`fixed` [groups, b, filters, width] is what the two given places of a triple and the filters' biases add up to, `mix`
[filters] what the filters do with the third place, which `candidates` [groups, n, width] fill. All are float32 and
contiguous.
"""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]


@compiled
def conv_scores(fixed: Floats, mix: Floats, candidates: Floats, output: Floats, out: Floats) -> None:
    """out [groups, b, n] is overwritten."""
    zero = np.float32(0)
    for u in range(fixed.shape[0]):
        for i in range(fixed.shape[1]):
            for j in range(candidates.shape[1]):
                total = zero
                for m in range(mix.shape[0]):
                    weight = mix[m]
                    for k in range(candidates.shape[2]):
                        value = fixed[u, i, m, k] + weight * candidates[u, j, k]
                        total += output[m, k] * max(value, zero)
                out[u, i, j] = total


@compiled
def conv_gradient(
    fixed: Floats, mix: Floats, candidates: Floats, output: Floats, up: Floats, sums: tuple[Floats, Floats, Floats]
) -> None:
    """Adds up what all gradients follow from; up [groups, b, n] is the gradient of the scores.

    With on = 1 where the value under the maximum is positive, else 0:

        active [groups, b, filters, width]   Σ_j up_ij · on
        met [filters, width]                 Σ_uij up_ij · on · candidate_k[u, j]
        candidates_grad [groups, n, width]   Σ_im up_ij · on · output_mk · mix_m
    """
    active, met, candidates_grad = sums
    zero = np.float32(0)
    for u in range(fixed.shape[0]):
        for i in range(fixed.shape[1]):
            for j in range(candidates.shape[1]):
                gradient = up[u, i, j]
                for m in range(mix.shape[0]):
                    weight = mix[m]
                    for k in range(candidates.shape[2]):
                        candidate = candidates[u, j, k]
                        step = gradient if fixed[u, i, m, k] + weight * candidate > zero else zero
                        active[u, i, m, k] += step
                        met[m, k] += step * candidate
                        candidates_grad[u, j, k] += step * (weight * output[m, k])

#!/usr/bin/env python3
"""Fits the coefficients of the simulated executor's step time to measured kernel times.

    python3 tools/fit_step_time.py KERNELS_DIR NUM_GPU_BLOCKS [BLOCK_SIZE]

KERNELS_DIR holds tp1_dense.csv, tp1_attention.csv and tp1_per_sequence.csv of LLMServingSim's profiler (its
`profiler/perf/<gpu>/<model>`), taken with one layer of the model. NUM_GPU_BLOCKS bounds the steps that are fitted:
what does not fit the KV cache cannot be a step. What is fitted, and what is not in it, is in docs/step-time.md.
Only the standard library is used.
"""

import bisect
import collections
import csv
import pathlib
import sys

NUM_LAYERS = 32  # Llama-3.1-8B
PER_LAYER = ["layernorm", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj"]
ONCE = ["embedding", "final_layernorm"]
PER_SEQUENCE = ["lm_head", "sampler"]
MAX_TOKENS = 2048  # the largest step that was measured
FEATURES = ["base_us", "prefill_token_us", "decode_token_us", "kv_token_us", "attention_pair_us"]


class Table:
    """Measured times over a size, with straight lines between."""

    def __init__(self):
        self.points = []

    def add(self, size, time_us):
        self.points.append((size, time_us))

    def at(self, size):
        if size == 0:
            return 0.0
        self.points.sort()
        index = min(max(bisect.bisect_left(self.points, (size, 0.0)), 1), len(self.points) - 1)
        (x0, y0), (x1, y1) = self.points[index - 1], self.points[index]
        return y0 + (y1 - y0) * (size - x0) / (x1 - x0)


def tables(path, size_column):
    by_layer = collections.defaultdict(Table)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            by_layer[row["layer"]].add(int(row[size_column]), float(row["time_us"]))
    return by_layer


def steps(kernels, max_kv_tokens):
    """Yields (features, time in us) of every step that the attention table holds and the KV cache can hold."""
    dense = tables(kernels / "tp1_dense.csv", "tokens")
    per_sequence = tables(kernels / "tp1_per_sequence.csv", "sequences")
    with open(kernels / "tp1_attention.csv", newline="") as file:
        for row in csv.DictReader(file):
            chunk, kv_prefill = int(row["prefill_chunk"]), int(row["kv_prefill"])
            num_decode, kv_decode = int(row["n_decode"]), int(row["kv_decode"])
            num_tokens = chunk + num_decode
            kv_tokens = (kv_prefill + chunk if chunk else 0) + num_decode * kv_decode
            if num_tokens > MAX_TOKENS or kv_tokens > max_kv_tokens:
                continue
            layer_us = float(row["time_us"]) + sum(dense[name].at(num_tokens) for name in PER_LAYER)
            once_us = sum(dense[name].at(num_tokens) for name in ONCE)
            num_sequences = num_decode + (1 if chunk else 0)
            sequences_us = sum(per_sequence[name].at(num_sequences) for name in PER_SEQUENCE)
            pairs = chunk * kv_prefill + chunk * (chunk + 1) / 2
            yield [1.0, chunk, num_decode, kv_tokens, pairs], NUM_LAYERS * layer_us + once_us + sequences_us


def kind(features):
    """Steps that only decode, only prefill, or do both."""
    _, prefill_tokens, decode_tokens, _, _ = features
    return "mixed" if prefill_tokens and decode_tokens else "prefill" if prefill_tokens else "decode"


def least_squares(rows):
    """Minimises the squares of the relative errors, each kind of step weighing the same.

    The table has fifty times as many mixed steps as others, but an engine mostly decodes. Normal equations, solved by
    Gauss with pivoting.
    """
    counts = collections.Counter(kind(features) for features, _ in rows)
    size = len(FEATURES)
    matrix = [[0.0] * (size + 1) for _ in range(size)]
    for features, time_us in rows:
        weight = 1.0 / counts[kind(features)]
        scaled = [feature / time_us for feature in features] + [1.0]
        for i in range(size):
            for j in range(size + 1):
                matrix[i][j] += weight * scaled[i] * scaled[j]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for k in range(size):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i])]
    return [matrix[i][size] / matrix[i][i] for i in range(size)]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kernels, num_gpu_blocks = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    block_size = int(sys.argv[3]) if len(sys.argv) == 4 else 16
    rows = list(steps(kernels, (num_gpu_blocks - 1) * block_size))
    coefficients = least_squares(rows)
    print(kernels.name)
    for name, value in zip(FEATURES, coefficients):
        print(f"  {name:18} {value:.6g}")
    print("  relative error       steps  mean    |mean|  p90     max")
    for name in ["decode", "prefill", "mixed"]:
        errors = [
            sum(c * f for c, f in zip(coefficients, features)) / time_us - 1.0
            for features, time_us in rows
            if kind(features) == name
        ]
        sizes = sorted(abs(error) for error in errors)
        print(f"    {name:16} {len(errors):7}  {sum(errors) / len(errors):+.1%}   {sum(sizes) / len(sizes):.1%}   "
              f"{sizes[len(sizes) * 9 // 10]:.1%}   {sizes[-1]:.1%}")
    if min(coefficients) < 0.0:
        sys.exit("a coefficient is negative: the steps do not determine it")


if __name__ == "__main__":
    main()

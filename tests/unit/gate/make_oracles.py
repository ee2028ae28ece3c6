#!/usr/bin/env python3
"""Makes oracles.json, what SciPy says about fixed data, for statistics_test.cpp.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python tests/unit/gate/make_oracles.py > tests/unit/gate/oracles.json

p-values are SciPy's. Intervals are found by inverting SciPy's test: its p-value is asked for between
all neighbouring points where it can change, so they owe nothing to a formula for their ranks.
"""
import json
import sys

import numpy as np
import scipy
from scipy import stats

ALPHA = 0.05
ALL = stats.PermutationMethod(n_resamples=np.inf)
EXACT_MOST = 50


def interval(points, p_of_shift):
    """The hull of the shifts not rejected at 5 %, or None where no shift can be rejected."""
    points = np.unique(points)
    margin = 1 + np.ptp(points)
    edges = np.concatenate([[points[0] - margin], points, [points[-1] + margin]])
    kept = [i for i in range(len(edges) - 1) if p_of_shift((edges[i] + edges[i + 1]) / 2) > ALPHA]
    if kept[0] == 0:
        return None
    return [edges[kept[0]], edges[kept[-1] + 1]]


def walsh(d):
    i, j = np.triu_indices(len(d))
    return (d[i] + d[j]) / 2


def one_sample(name, d):
    d = np.array(d)
    exact = np.count_nonzero(d) <= EXACT_MOST
    tied = len(np.unique(np.abs(d))) < len(d)
    if not np.any(d):
        p = 1.0
    elif not exact:
        p = stats.wilcoxon(d, correction=True, method="asymptotic").pvalue
    elif tied:
        p = stats.wilcoxon(d[d != 0], method=ALL).pvalue
    else:
        p = stats.wilcoxon(d, method="exact").pvalue
    # The interval of tied data is that of distinct data with the same ranks of pair means.
    ci = None if tied else interval(walsh(d), lambda t: stats.wilcoxon(
        d - t, correction=True, method="exact" if exact else "asymptotic").pvalue)
    return {"name": name, "d": d.tolist(), "p": float(p), "tied": bool(tied), "ci95": ci,
            "estimate": float(np.median(walsh(d)))}


def two_samples(name, a, b):
    a, b = np.array(a), np.array(b)
    pooled = np.concatenate([a, b])
    exact = len(pooled) <= EXACT_MOST
    tied = len(np.unique(pooled)) < len(pooled)
    differences = np.subtract.outer(b, a).ravel()
    if not exact:
        p = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    else:
        p = stats.mannwhitneyu(a, b, method=ALL if tied else "exact").pvalue
    ci = None if tied else interval(differences, lambda t: stats.mannwhitneyu(
        a, b - t, method="exact" if exact else "asymptotic").pvalue)
    return {"name": name, "a": a.tolist(), "b": b.tolist(), "p": float(p), "tied": bool(tied),
            "ci95": ci, "estimate": float(np.median(differences))}


def main():
    random = np.random.RandomState(20261129)

    def draw(n, shift=0.0):
        return np.round(shift + random.standard_t(4, n), 9)  # no ties

    ones = [one_sample(f"{n} differences, shift {shift}", draw(n, shift))
            for n in (1, 5, 6, 7, 12, 20, 50, 60) for shift in (0.0, 0.8)]
    ones += [one_sample("ties", [1, 1, -1, 2, 2, 3, -0.5, 2]),
             one_sample("zeros", [0, 0, 1, 2, -3, 4, 5]),
             one_sample("all zero", [0, 0, 0, 0, 0, 0, 0]),
             one_sample("90 with ties and zeros", np.round(draw(90, 0.3), 0))]
    twos = [two_samples(f"{m} and {n}, shift {shift}", draw(m), draw(n, shift))
            for m, n in ((1, 1), (3, 3), (4, 4), (5, 3), (3, 5), (10, 5), (7, 12), (25, 25), (40, 30))
            for shift in (0.0, 1.0)]
    twos += [two_samples("ties", [1, 2, 2, 3, 4], [2, 3, 3, 5, 6, 6]),
             two_samples("all equal", [5, 5, 5, 5, 5], [5, 5, 5]),
             two_samples("70 with ties", np.round(draw(40), 0), np.round(draw(30, 0.5), 0))]
    lists = [[0.01], [0.04, 0.01, 0.03, 0.5], [0.2, 0.2, 0.2], [0.001, 0.9, 0.02, 0.02, 1.0],
             np.round(random.uniform(size=40) ** 3, 6).tolist()]
    adjusted = [{"p": p, "q": stats.false_discovery_control(p).tolist()} for p in lists]
    json.dump({"made_by": f"make_oracles.py, SciPy {scipy.__version__}", "one_sample": ones,
               "two_samples": twos, "benjamini_hochberg": adjusted}, sys.stdout, indent=1)
    print()


main()

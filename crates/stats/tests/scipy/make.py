"""Asks SciPy for answers and writes them to answers.json beside this file.

python3 -m venv /tmp/answers && /tmp/answers/bin/pip install numpy==2.4.6 scipy==1.17.1
/tmp/answers/bin/python crates/stats/tests/scipy/make.py
"""

import json
import math
import pathlib

import numpy
import scipy
from scipy import stats

SEED = 20


def data_sets():
    random = numpy.random.default_rng(SEED)
    shapes = [
        lambda n: random.normal(10, 1, n),
        lambda n: random.lognormal(0, 0.5, n),
        lambda n: random.exponential(3, n),
        lambda n: random.normal(0, 1, n) + 4 * random.integers(0, 2, n) + 20,
        lambda n: numpy.cumsum(random.normal(0, 1, n)) + 50,
    ]
    sizes = [(8, 9), (12, 10), (20, 25), (45, 30)]
    for index in range(20):
        left_n, right_n = sizes[index % 4]
        shape = shapes[index % 5]
        left, right = shape(left_n), shape(right_n) * (1 + 0.05 * (index % 3))
        if index % 7 == 3:  # Ties, as clocks with a coarse tick give them.
            left, right = numpy.round(left), numpy.round(right)
        yield [float(v) for v in left], [float(v) for v in right]


def autocorrelation(x, lag):
    d = numpy.asarray(x) - numpy.mean(x)
    return float(numpy.sum(d[: len(d) - lag] * d[lag:]) / numpy.sum(d * d))


def shift_interval(left, right):
    """Hodges and Lehmann's estimate and exact interval by the definition in R's wilcox.test:
    the quantile of the distribution of U by counting, then order statistics of differences."""
    d = sorted(a - b for a in left for b in right)
    m, n = len(left), len(right)
    table = [[0] * (m * n + 1) for _ in range(m + 1)]
    table[0][0] = 1
    for rank in range(1, m + n + 1):
        for j in range(min(m, rank), 0, -1):
            above = rank - j
            for u in range(m * n, above - 1, -1):
                table[j][u] += table[j - 1][u - above]
    total = math.comb(m + n, m)
    running, rank = 0, 0
    while True:
        running += table[m][rank]
        if running / total >= 0.025:
            break
        rank += 1
    return {"shift": float(numpy.median(d)), "low": d[rank - 1], "high": d[m * n - rank]}


def answer(left, right):
    exact = stats.mannwhitneyu(left, right, method="exact")
    normal = stats.mannwhitneyu(left, right, method="asymptotic")
    t = stats.t.interval(0.95, len(left) - 1, numpy.mean(left), stats.sem(left))
    shapiro = stats.shapiro(left)
    skewness = stats.skewtest(left)
    ties = len(set(left + right)) < len(left) + len(right)
    return {
        "left": left,
        "right": right,
        "ties": ties,
        "t_interval": [float(t[0]), float(t[1])],
        "u": float(exact.statistic),
        "exact_p": float(exact.pvalue),
        "normal_p": float(normal.pvalue),
        "hodges_lehmann": None if ties else shift_interval(left, right),
        "shapiro_w": float(shapiro.statistic),
        "shapiro_p": float(shapiro.pvalue),
        "skewness": float(stats.skew(left)),
        "skewness_p": float(skewness.pvalue),
        "quantiles": [float(numpy.quantile(left, q)) for q in (0.1, 0.5, 0.9)],
        "autocorrelation": [autocorrelation(left, lag) for lag in (1, 2, 3)],
    }


def quantiles():
    t = [[v, float(stats.t.ppf(0.975, v))] for v in (1, 2, 2.5, 3, 4.7, 9, 29, 100, 1000)]
    ranks = []
    for n in (10, 50, 368, 1000, 5000, 100_000, 1_000_000):
        for q in (0.1, 0.25, 0.5, 0.9, 0.99):
            if (1 - q) ** n > 0.025 or q**n > 0.025:
                continue
            binomial = stats.binom(n, q)
            # The largest rank l with P(K <= l - 1) <= 0.025, the smallest u with P(K >= u) <= 0.025.
            low = int(binomial.ppf(0.025))
            while binomial.cdf(low) <= 0.025:
                low += 1
            while binomial.cdf(low - 1) > 0.025:
                low -= 1
            high = int(binomial.isf(0.025))
            while binomial.sf(high - 1) > 0.025:
                high += 1
            while binomial.sf(high - 2) <= 0.025:
                high -= 1
            ranks.append([n, q, low, high])
    shares = []
    for k, n in ((0, 10), (1, 10), (5, 50), (99, 100), (3, 1000), (500, 1000)):
        interval = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
        shares.append([k, n, float(interval.low), float(interval.high)])
    return {"t_975": t, "ranks": ranks, "shares": shares}


answers = {
    "scipy": scipy.__version__,
    "numpy": numpy.__version__,
    "seed": SEED,
    "quantiles": quantiles(),
    "sets": [answer(left, right) for left, right in data_sets()],
}
path = pathlib.Path(__file__).with_name("answers.json")
path.write_text(json.dumps(answers, indent=1) + "\n")
print(f"{path}: SciPy {scipy.__version__}, {len(answers['sets'])} sets")

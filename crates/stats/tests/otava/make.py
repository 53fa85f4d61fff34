"""Asks Apache Otava for the change points of synthetic histories and writes answers.json.

python3 -m venv /tmp/answers && /tmp/answers/bin/pip install numpy==2.4.6 scipy==1.17.1
/tmp/answers/bin/pip install --no-deps apache-otava==0.8.0
/tmp/answers/bin/python crates/stats/tests/otava/make.py
"""

import json
import pathlib
from importlib.metadata import version

import numpy
from otava.analysis import TTestSignificanceTester, compute_change_points, split


def merged_with_both_neighbours(values):
    """Otava's second pass with one difference. When Otava takes a point out, it judges the two
    points after it anew; but the intervals that changed are those of its two neighbours."""
    tester = TTestSignificanceTester(0.001)
    points = split(list(values), 50, 0.01)
    while points:
        weakest = max(points, key=lambda point: point.stats.pvalue)
        if weakest.stats.pvalue < 0.001:
            break
        at = points.index(weakest)
        del points[at]
        intervals = tester.get_intervals(points)
        for index in (at - 1, at):
            if 0 <= index < len(points):
                points[index] = tester.change_point(points[index].to_candidate(), values, intervals)
    return points


random = numpy.random.default_rng(50)
histories = []
for index in range(40):
    n = int(random.integers(5, 220))
    steps = int(random.integers(0, 5))
    level = numpy.full(n, 100.0)
    for at in sorted(random.integers(0, n, steps)):
        level[at:] *= 1 + random.choice([-0.2, -0.1, -0.05, 0.05, 0.1, 0.2])
    values = level * (1 + random.choice([0.005, 0.01, 0.03]) * random.normal(size=n))
    if index % 4 == 3:  # Lone spikes, which must not count as changes.
        values[random.integers(0, n, 2)] *= 1.5
    values = [round(float(value), 3) for value in values]
    found, _ = compute_change_points(list(values), window_len=50, max_pvalue=0.001)
    both = merged_with_both_neighbours(values)
    histories.append(
        {
            "values": values,
            "otava": [int(point.index) for point in found],
            "both_neighbours": [[int(point.index), float(point.stats.pvalue)] for point in both],
        }
    )

answers = {"otava": version("apache-otava"), "histories": histories}
path = pathlib.Path(__file__).with_name("answers.json")
path.write_text(json.dumps(answers) + "\n")
print(path, sum(len(history["otava"]) for history in histories), "change points")

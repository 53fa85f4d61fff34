"""Asks SciPy for non-negative least squares and writes the answers to nnls.json beside this file.

python3 -m venv /tmp/answers && /tmp/answers/bin/pip install numpy==2.4.6 scipy==1.17.1
/tmp/answers/bin/python crates/stats/tests/scipy/make_nnls.py
"""

import json
import pathlib

import numpy
import scipy
from scipy.optimize import nnls

SEED = 38


def problems():
    random = numpy.random.default_rng(SEED)
    for index in range(40):
        columns = 1 + index % 7
        rows = columns + [1, 3, 12, 40][index % 4]
        matrix = random.normal(0, 1, (rows, columns))
        if index % 3 == 0:  # As counts are: nothing below 0, columns of all sizes.
            matrix = numpy.abs(matrix) * 10.0 ** random.integers(-3, 4, columns)
        if index % 5 == 4 and columns > 2:  # Two columns that hardly differ.
            matrix[:, 1] = matrix[:, 0] + 1e-4 * random.normal(0, 1, rows)
        truth = numpy.maximum(random.normal(0, 1, columns), 0)
        scale = numpy.linalg.norm(matrix, axis=0)
        right = matrix @ (truth / scale) + 0.1 * random.normal(0, 1, rows)
        yield matrix, right


answers = []
for matrix, right in problems():
    found, norm = nnls(matrix, right)
    answers.append({
        "matrix": [[float(v) for v in row] for row in matrix],
        "right": [float(v) for v in right],
        "found": [float(v) for v in found],
        "norm": float(norm),
    })
text = {"scipy": scipy.__version__, "numpy": numpy.__version__, "seed": SEED, "problems": answers}
path = pathlib.Path(__file__).with_name("nnls.json")
path.write_text(json.dumps(text, separators=(",", ":")) + "\n")

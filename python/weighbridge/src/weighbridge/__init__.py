"""Reads the runs of Weighbridge: cells, intervals, messages, histograms and comparisons."""

from .histogram import Histogram
from .run import Cell, Comparison, Metric, NotARun, Run, latest, load, runs

__all__ = [
    "Cell",
    "Comparison",
    "Histogram",
    "Metric",
    "NotARun",
    "Run",
    "latest",
    "load",
    "runs",
]
__version__ = "0.1.0"

"""The reader, against the runs in tests/stored: what it returns is what their summaries say."""

import json
import math
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python/weighbridge/src"))

import weighbridge  # noqa: E402


class Reader(unittest.TestCase):
    """Reads a copy of each stored run; `expected.json` is what `weigh report --json` printed."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.runs = []
        for kind in ("compare", "limit"):
            stored = next((ROOT / "tests/stored" / kind).iterdir())
            copy = Path(self.place.name) / stored.name
            shutil.copytree(stored, copy)
            (copy / "expected.json").rename(copy / "summary.json")
            self.runs.append(copy)

    def tearDown(self):
        self.place.cleanup()

    def test_cells_are_those_of_the_summary(self):
        for folder in self.runs:
            summary = json.loads((folder / "summary.json").read_text())
            run = weighbridge.load(folder)
            self.assertEqual(run.id, summary["run"]["id"])
            self.assertEqual(len(run.cells), len(summary["cells"]))
            self.assertTrue(run.cells)
            for cell, due in zip(run.cells, summary["cells"]):
                self.assertEqual(run.cell(cell.name).point, due["point"])
                self.assertEqual(cell.ledger, due["ledger"])
                for name, metric in due["metrics"].items():
                    own = cell.metrics[name]
                    self.assertEqual((own.value, own.low, own.high, own.unit, own.n),
                                     (metric["value"], metric["low"], metric["high"],
                                      metric["unit"], metric["n"]))
                self.assertEqual(len(cell.trials()), cell.repetitions)

    def test_histograms_have_the_recorded_quantiles(self):
        seen = 0
        for folder in self.runs:
            for trial in weighbridge.load(folder).trials():
                for name, text in trial["histograms"].items():
                    histogram = weighbridge.Histogram.decode(text)
                    if name in trial["samples"]:
                        self.assertEqual(histogram.count, trial["samples"][name])
                    self.assertEqual(sum(b[2] for b in histogram.buckets()), histogram.count)
                    for word, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
                        due = trial["metrics"].get(f"{name}.{word}")
                        if due is not None and name != "connect_time_ns":
                            self.assertEqual(histogram.quantile(share), due, (name, word))
                            seen += 1
                    due = trial["metrics"].get(f"{name}.mean")
                    if due is not None:
                        self.assertAlmostEqual(histogram.mean() / due, 1.0, delta=1e-3)
        self.assertGreater(seen, 50)

    def test_histograms_of_a_cell_are_those_of_its_trials(self):
        cell = weighbridge.load(self.runs[0]).cells[0]
        whole = cell.histogram("delivery_time_ns")
        parts = [weighbridge.Histogram.decode(trial["histograms"]["delivery_time_ns"])
                 for trial in cell.trials()]
        self.assertEqual(whole.count, sum(part.count for part in parts))
        self.assertEqual(whole.quantile(1.0), max(part.quantile(1.0) for part in parts))
        with self.assertRaises(KeyError):
            cell.histogram("nothing")

    def test_intervals_add_up_to_the_ledger(self):
        run = weighbridge.load(self.runs[0])
        for cell in run.cells:
            sent = sum(row["sent"] for row in run.intervals()
                       if row["point"] == cell.point and not row["warmup"])
            self.assertEqual(sent, cell.ledger["sent"], cell.name)

    def test_comparisons_and_tables(self):
        run = weighbridge.load(self.runs[0])
        self.assertEqual(len(run.comparisons), len(run.summary["comparisons"]))
        for own, due in zip(run.comparisons, run.summary["comparisons"]):
            self.assertEqual((own.left, own.right, own.verdict),
                             (due["left"], due["right"], due["verdict"]))
            self.assertEqual(own.ratio, (due["ratio"] or {}).get("value"))
        for table, count in (("cells", len(run.cells)), ("trials", len(run.trials())),
                             ("intervals", len(run.intervals())),
                             ("comparisons", len(run.comparisons))):
            rows = run.rows(table)
            self.assertEqual(len(rows), count)
            self.assertFalse(any(isinstance(v, dict) for row in rows for v in row.values()))
        with self.assertRaises(KeyError):
            run.rows("nothing")

    def test_a_data_frame_has_the_same_figures(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        run = weighbridge.load(self.runs[0])
        frame = run.frame("cells")
        self.assertEqual(list(frame["cell"]), [cell.name for cell in run.cells])
        self.assertEqual(frame["throughput_out_per_s"][0],
                         run.cells[0].metrics["throughput_out_per_s"].value)

    def test_what_is_not_a_run_is_named(self):
        with self.assertRaisesRegex(weighbridge.NotARun, "summary.json"):
            weighbridge.load(self.place.name)
        summary = self.runs[0] / "summary.json"
        summary.write_text('{"schema": "weigh/summary/9"}')
        with self.assertRaisesRegex(weighbridge.NotARun, "weigh/summary/9"):
            weighbridge.load(self.runs[0])
        with self.assertRaisesRegex(weighbridge.NotARun, "no run"):
            weighbridge.latest(Path(self.place.name) / "nothing")

    def test_a_damaged_line_is_left_out_and_the_newest_run_is_found(self):
        count = len(list(weighbridge.load(self.runs[0]).events()))
        with open(self.runs[0] / "journal.jsonl", "a") as journal:
            journal.write('{"event": "interv')
        run = weighbridge.load(self.runs[0])
        self.assertEqual(len(list(run.events())), count)
        newest = max(self.runs, key=lambda folder: folder.name)
        self.assertEqual(weighbridge.latest(self.place.name).folder, newest)

    def test_what_is_not_a_histogram_is_refused(self):
        for text in ("", "AAAA", "HISTEwAAAAkAAAAAAAAAAwAAAAAAAAAB" + "A" * 32):
            with self.assertRaises(ValueError):
                weighbridge.Histogram.decode(text)
        self.assertTrue(math.isnan(weighbridge.Histogram().quantile(0.5)))


if __name__ == "__main__":
    unittest.main()

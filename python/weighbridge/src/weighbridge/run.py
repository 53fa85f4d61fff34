"""A run's folder: `summary.json` with its figures, `journal.jsonl` with its events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Union

from .histogram import Histogram

PathLike = Union[str, "Path"]
Json = Dict[str, Any]


class NotARun(Exception):
    """A folder that holds no run, or one that this version cannot read."""


@dataclass(frozen=True)
class Metric:
    """One figure of a cell, over its repetitions."""

    name: str
    value: Optional[float]
    low: Optional[float]
    high: Optional[float]
    unit: str
    n: int
    values: List[Optional[float]]
    refused: Optional[str] = None


@dataclass(frozen=True)
class Comparison:
    """One metric of two cells, compared."""

    metric: str
    left: str
    right: str
    factor: str
    verdict: str
    ratio: Optional[float]
    low: Optional[float]
    high: Optional[float]
    stands: bool
    reason: Optional[str] = None


@dataclass(frozen=True)
class Cell:
    """One case with the figures of all its repetitions."""

    name: str
    point: Json
    guarantee: str
    target: str
    repetitions: int
    valid: bool
    metrics: Dict[str, Metric]
    ledger: Json
    warnings: List[Json]
    _run: "Run" = field(repr=False, compare=False)

    def trials(self) -> List[Json]:
        """Returns the event `trial_finished` of each repetition, in the order of the run."""
        return [trial for trial in self._run.trials() if trial["point"] == self.point]

    def histogram(self, name: str) -> Histogram:
        """Returns a recorded time, such as `response_time_ns`, of all repetitions together.

        Raises KeyError if it was not recorded.
        """
        merged: Optional[Histogram] = None
        for trial in self.trials():
            text = trial.get("histograms", {}).get(name)
            if text is None:
                continue
            one = Histogram.decode(text)
            if merged is None:
                merged = one
            else:
                merged.add(one)
        if merged is None:
            raise KeyError(f"{self.name} has no histogram {name}")
        return merged


class Run:
    """A run, read from its folder."""

    def __init__(self, folder: PathLike) -> None:
        """Reads `summary.json`. Raises NotARun if there is none of a known version."""
        self.folder = Path(folder)
        path = self.folder / "summary.json"
        try:
            self.summary: Json = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotARun(f"{path}: {error}; write it with weigh report RUN") from error
        schema = self.summary.get("schema", "")
        if schema != SUMMARY_SCHEMA:
            raise NotARun(f"{path}: the schema is {schema!r}, and this reads {SUMMARY_SCHEMA!r}")

    @property
    def id(self) -> str:
        """Name of the run."""
        return str(self.summary["run"]["id"])

    @property
    def plan(self) -> Json:
        """The plan, complete."""
        return dict(self.summary["run"]["plan"])

    @property
    def host(self) -> Json:
        """Facts of the generator's host."""
        return dict(self.summary["run"]["host"])

    @property
    def cells(self) -> List[Cell]:
        """All cells, in the order of the summary."""
        return [self._cell(cell) for cell in self.summary["cells"]]

    @property
    def comparisons(self) -> List[Comparison]:
        """All comparisons, also those that were refused."""
        return [_comparison(own) for own in self.summary["comparisons"]]

    def cell(self, name: str) -> Cell:
        """Returns the cell with this name. Raises KeyError with all names if there is none."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(f"no cell {name!r}: {', '.join(own.name for own in self.cells)}")

    def events(self, kind: Optional[str] = None) -> Iterator[Json]:
        """Yields the events of the journal, or those of one kind.

        An incomplete or damaged line is left out, as `weigh` itself does after a crash.
        """
        with open(self.folder / "journal.jsonl", encoding="utf-8", errors="replace") as journal:
            for line in journal:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict) and (kind is None or event.get("event") == kind):
                    yield event

    def trials(self) -> List[Json]:
        """Returns every `trial_finished`; the last one counts if a trial was done again."""
        return list({event["trial"]: event for event in self.events("trial_finished")}.values())

    def intervals(self) -> List[Json]:
        """Returns every `interval`, with `point` and `repetition` of its trial."""
        trials = {event["trial"]: event for event in self.events("trial_started")}
        rows = []
        for event in self.events("interval"):
            trial = trials.get(event["trial"], {})
            place = {"point": trial.get("point"), "repetition": trial.get("repetition")}
            rows.append({**event, **place})
        return rows

    def messages(self, trial: Optional[str] = None) -> Any:
        """Returns single messages as a pyarrow table, of one trial or of all.

        Needs pyarrow and a run with `--keep-messages`. Raises NotARun without such files.
        """
        import pyarrow
        import pyarrow.parquet

        files = sorted((self.folder / "messages").glob(f"{trial or '*'}.parquet"))
        if not files:
            raise NotARun(f"{self.folder} has no messages: measure with weigh --keep-messages")
        return pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in files])

    def rows(self, table: str) -> List[Json]:
        """Returns a table as flat dictionaries: cells, trials, intervals or comparisons."""
        if table == "cells":
            return [_cell_row(cell) for cell in self.cells]
        if table == "trials":
            kept = ("trial", "repetition", "seed", "guarantee", "target")
            return [
                {**{key: own.get(key) for key in kept}, **own["point"], **own["metrics"]}
                for own in self.trials()
            ]
        if table == "intervals":
            return [
                {**{key: own[key] for key in own if key != "point"}, **(own["point"] or {})}
                for own in self.intervals()
            ]
        if table == "comparisons":
            return [dict(vars(own)) for own in self.comparisons]
        raise KeyError(f"no table {table!r}: cells, trials, intervals, comparisons")

    def frame(self, table: str) -> Any:
        """Returns a table as a pandas DataFrame. Needs pandas."""
        import pandas

        return pandas.DataFrame(self.rows(table))

    def _cell(self, cell: Json) -> Cell:
        metrics = {name: _metric(name, own) for name, own in cell["metrics"].items()}
        return Cell(
            name=cell["name"],
            point=cell["point"],
            guarantee=cell["guarantee"],
            target=cell["target"],
            repetitions=cell["repetitions"],
            valid=cell["valid"],
            metrics=metrics,
            ledger=cell["ledger"],
            warnings=cell["doubts"],
            _run=self,
        )


def load(folder: PathLike) -> Run:
    """Reads the run in this folder. Raises NotARun if there is none."""
    return Run(folder)


def runs(folder: PathLike = "runs") -> List[Path]:
    """Returns the folders of all runs below `folder` that have a summary, oldest first."""
    return sorted(path.parent for path in Path(folder).glob("*/summary.json"))


def latest(folder: PathLike = "runs") -> Run:
    """Reads the newest run below `folder`. Raises NotARun if there is none."""
    found = runs(folder)
    if not found:
        raise NotARun(f"{folder} has no run with a summary.json")
    return Run(found[-1])


def _metric(name: str, own: Json) -> Metric:
    return Metric(
        name=name,
        value=own.get("value"),
        low=own.get("low"),
        high=own.get("high"),
        unit=own["unit"],
        n=own["n"],
        values=own["values"],
        refused=own.get("refused"),
    )


def _comparison(own: Json) -> Comparison:
    ratio = own.get("ratio") or {}
    return Comparison(
        metric=own["metric"],
        left=own["left"],
        right=own["right"],
        verdict=own["verdict"],
        reason=own.get("reason"),
        factor=own.get("factor", ""),
        ratio=ratio.get("value"),
        low=ratio.get("low"),
        high=ratio.get("high"),
        stands=own.get("stands", False),
    )


def _cell_row(cell: Cell) -> Json:
    row: Json = {"cell": cell.name, "guarantee": cell.guarantee, "valid": cell.valid}
    row.update(cell.point)
    counts = {key: value for key, value in cell.ledger.items() if not isinstance(value, dict)}
    row.update({f"ledger.{key}": value for key, value in counts.items()})
    for name, metric in cell.metrics.items():
        row.update({name: metric.value, f"{name}.low": metric.low, f"{name}.high": metric.high})
    return row


SUMMARY_SCHEMA = "weigh/summary/1"

"""A sweep for TensorBoard's HParams tab, without TensorFlow.

The workdir's event file says which columns there are; each run's own says its values
and how it ended. A run writes every field of its config, so rows that are added later
may vary what no row varied before.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tensorboard.plugins.hparams.api_pb2 import (
    DATA_TYPE_BOOL,
    DATA_TYPE_FLOAT64,
    DATA_TYPE_STRING,
    DATASET_TRAINING,
    DATASET_VALIDATION,
    STATUS_FAILURE,
    STATUS_SUCCESS,
    Experiment,
    HParamInfo,
    MetricInfo,
    MetricName,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)
from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata

from transformer_ablation.config import FIELDS
from transformer_ablation.report.columns import flatten, row_differences, word
from transformer_ablation.report.metrics import Session

PLUGIN = "hparams"
EXPERIMENT = "_hparams_/experiment"
START, END = "_hparams_/session_start_info", "_hparams_/session_end_info"
# A field that may be None is written twice: as a word, and where it is a number also
# under this name, for sweeps in which no row has None.
NUMBER = "{} (number)"
STATUSES = {
    "finished": STATUS_SUCCESS,
    "diverged": STATUS_FAILURE,
    "failed": STATUS_FAILURE,
}

# What runs are compared by: tag, heading, whether it is of training.
METRICS = (
    ("validation/perplexity", "validation PPL, latest", False),
    ("validation/nll", "validation loss, latest", False),
    ("validation/final_perplexity", "validation PPL", False),
    ("validation/final_bleu", "validation BLEU", False),
    ("test/final_perplexity", "test PPL", False),
    ("test/final_bleu", "test BLEU", False),
    ("train/loss", "training loss", True),
    ("train/tokens_per_second", "target tokens / s", True),
)


def session_values(session: Session) -> dict[str, str | float | bool]:
    """``{name: value}`` of all that may become a column."""
    values: dict[str, str | float | bool] = {
        "row": session.row,
        "group": session.group,
        "seed": session.seed,
    }
    for path, value in flatten(session.config).items():
        values[path] = word(value) if value is None or _optional(path) else value
        if _optional(path) and _is_number(value):
            values[NUMBER.format(path)] = value
    return values


def session_start(session: Session) -> Summary:
    """What a run says of itself when it begins."""
    start = SessionStartInfo(start_time_secs=time.time())
    for name, value in session_values(session).items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif isinstance(value, str):
            start.hparams[name].string_value = value
        else:
            start.hparams[name].number_value = value
    return _summary(START, session_start_info=start)


def session_end(status: str) -> Summary:
    """How a run ended: ``finished``, ``diverged`` or ``failed``."""
    end = SessionEndInfo(status=STATUSES[status], end_time_secs=time.time())
    return _summary(END, session_end_info=end)


def experiment(sweep: Mapping[str, Any]) -> Summary:
    """The columns of a sweep: row, group, seed, fields that rows vary, and metrics."""
    rows = sweep["rows"]
    infos = [
        _words("row", [row["name"] for row in rows]),
        _words("group", [row["group"] for row in rows]),
        _numbers("seed", "seed", sweep["seeds"]),
    ]
    varied = [row_differences(sweep["config"], row["config"]) for row in rows]
    configs = [flatten(row["config"]) for row in rows]
    for path in dict.fromkeys(path for found in varied for path in found):
        infos.append(_column(path, [config.get(path) for config in configs]))
    metrics = [
        MetricInfo(
            name=MetricName(tag=tag),
            display_name=heading,
            dataset_type=DATASET_TRAINING if training else DATASET_VALIDATION,
        )
        for tag, heading, training in METRICS
    ]
    found = Experiment(name=sweep["title"], hparam_infos=infos, metric_infos=metrics)
    return _summary(EXPERIMENT, experiment=found)


def _column(path: str, values: Sequence[Any]) -> HParamInfo:
    """Numbers where all rows have one; else words, which None is as well."""
    if all(map(_is_number, values)):
        name = NUMBER.format(path) if _optional(path) else path
        return _numbers(name, path, values)
    if all(isinstance(value, bool) for value in values):
        info = _info(path, path, DATA_TYPE_BOOL, values)
        for value in sorted(set(values)):
            info.domain_discrete.values.add().bool_value = value
        return info
    return _words(path, [word(value) for value in values])


def _words(name: str, values: Sequence[str]) -> HParamInfo:
    info = _info(name, name, DATA_TYPE_STRING, values)
    for value in sorted(set(values)):
        info.domain_discrete.values.add().string_value = value
    return info


def _numbers(name: str, heading: str, values: Sequence[float]) -> HParamInfo:
    info = _info(name, heading, DATA_TYPE_FLOAT64, values)
    info.domain_interval.min_value = min(values)
    info.domain_interval.max_value = max(values)
    return info


def _info(name: str, heading: str, kind: int, values: Sequence[Any]) -> HParamInfo:
    """A column; one whose values differ is shown without being asked for."""
    differs = len(set(values)) > 1
    return HParamInfo(name=name, display_name=heading, type=kind, differs=differs)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _optional(path: str) -> bool:
    """Whether the field may be None; those of other versions may be anything."""
    return path not in FIELDS or type(None) in FIELDS[path].metadata["rule"].types


def _summary(tag: str, **content: Any) -> Summary:
    data = HParamsPluginData(version=0, **content)
    plugin = SummaryMetadata.PluginData(
        plugin_name=PLUGIN, content=data.SerializeToString()
    )
    metadata = SummaryMetadata(plugin_data=plugin)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata)])

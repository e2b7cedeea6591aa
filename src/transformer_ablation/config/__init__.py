"""The schema of a run: its sections, what each field may hold, which go together.

``from_mapping`` turns a ``ConfigDict`` (or any nested mapping) into a ``Config``.
No field has a default here: every default stands once, in ``configs/base.py``.
"""

from transformer_ablation.config.architectures import PUBLISHED, UNREAD, of_architecture
from transformer_ablation.config.data_contradictions import (
    LANGUAGES,
    RESERVED_LANGUAGES,
    RESERVED_SPLITS,
    SPLITS,
)
from transformer_ablation.config.mapping import (
    differences,
    field_fault,
    from_mapping,
    replace,
    to_mapping,
)
from transformer_ablation.config.names import suggestion, unknown_name
from transformer_ablation.config.rules import ConfigError, Rule
from transformer_ablation.config.sections import (
    FIELDS,
    SECTIONS,
    Config,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    OptimizerConfig,
    RegularizationConfig,
    TrainConfig,
    get,
)

__all__ = [
    "PUBLISHED",
    "UNREAD",
    "of_architecture",
    "LANGUAGES",
    "RESERVED_LANGUAGES",
    "RESERVED_SPLITS",
    "SPLITS",
    "differences",
    "field_fault",
    "from_mapping",
    "replace",
    "to_mapping",
    "suggestion",
    "unknown_name",
    "ConfigError",
    "Rule",
    "FIELDS",
    "SECTIONS",
    "Config",
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "OptimizerConfig",
    "RegularizationConfig",
    "TrainConfig",
    "get",
]

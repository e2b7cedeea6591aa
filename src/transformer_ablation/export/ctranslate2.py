"""A Marian folder of this project as a CTranslate2 model.

CTranslate2's own loader of Marian models takes their last piece for padding, which is
dropped, and starts the decoder from a vector of zeros. Here padding is the first
piece and the decoder starts from the begin of sentence, so the loader is told so.
"""

import importlib
from pathlib import Path
from typing import Any

BEGIN = "<s>"
CONFIG_CLASS = "MarianConfig"


def convert(marian_folder: Path, out: Path) -> None:
    """Writes the converted model to ``out``; needs ctranslate2 and transformers."""
    loaders = importlib.import_module("ctranslate2.converters.transformers")
    registered = loaders._MODEL_LOADERS
    usual = registered[CONFIG_CLASS]
    registered[CONFIG_CLASS] = _loader(loaders)
    try:
        loaders.TransformersConverter(str(marian_folder)).convert(str(out), force=True)
    finally:
        registered[CONFIG_CLASS] = usual


def _loader(loaders: Any) -> Any:
    marian, bart = loaders.MarianMTLoader, loaders.BartLoader

    class Loader(marian):
        """Keeps every piece, and starts from the begin of sentence."""

        def get_model_spec(self, model: Any) -> Any:
            model.config.normalize_before = False
            model.config.normalize_embedding = False
            return bart.get_model_spec(self, model)

        def get_vocabulary(self, model: Any, tokenizer: Any) -> Any:
            return bart.get_vocabulary(self, model, tokenizer)

        def set_decoder(self, spec: Any, decoder: Any) -> None:
            super().set_decoder(spec, decoder)
            spec.start_from_zero_embedding = False

        def set_config(self, config: Any, model: Any, tokenizer: Any) -> None:
            super().set_config(config, model, tokenizer)
            config.decoder_start_token = BEGIN
            config.layer_norm_epsilon = model.config.layer_norm_epsilon

    return Loader()

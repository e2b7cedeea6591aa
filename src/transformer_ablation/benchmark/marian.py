"""Hugging Face's Marian model at work, in a process of its own.

Nothing here imports JAX, so PyTorch has the process for itself. It waits for orders
at its end of a connection, and sleeps while the other side works.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.benchmark.machine import peak_memory_bytes
from transformer_ablation.config import Config, ModelConfig
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.export import marian
from transformer_ablation.vocabulary import PAD

LEARNING_RATE = 2e-4
SHORT = 0.2  # seconds
# Sides of one batch: ids [rows, longest], PAD behind.
Pairs = tuple[np.ndarray, np.ndarray]


class Job(NamedTuple):
    """What the process is to build: a model of a config's sizes, and its threads."""

    config: Config
    vocabulary_size: int
    threads: int
    batches: list[Pairs]
    sources: list[np.ndarray]


def nearest(model: ModelConfig) -> list[str]:
    """How the Marian model timed differs from a model, one line a field.

    Raises:
      ExportError: if none comes near: it is a Transformer whose heads share d_model
        evenly.
    """
    if model.architecture != "transformer":
        raise marian.ExportError(
            f"model.architecture: {model.architecture!r} cannot be timed beside a "
            "Marian model, which is a Transformer; leave out --peers"
        )
    if model.d_model % model.num_heads:
        raise marian.ExportError(
            f"model.num_heads: {model.num_heads} heads do not share model.d_model = "
            f"{model.d_model} evenly, as Marian's must; leave out --peers"
        )
    return [
        f"Marian is timed with {wanted} for model.{name} = {getattr(model, name)!r}"
        for name, wanted in marian.differences(model).items()
    ]


def length_sorted(
    pairs: TokenizedSplit, tokens_per_batch: int, seed: int = 0
) -> list[Pairs]:
    """Each pair once, in batches of similar length, the batches in random order.

    A batch has as many rows as fit into ``tokens_per_batch`` target positions, and
    is only as wide as its longest source and target.
    """
    target = pairs.target.lengths
    order = np.lexsort((pairs.source.lengths, target))
    parts: list[list[int]] = [[]]
    for i in order.tolist():
        if parts[-1] and (len(parts[-1]) + 1) * target[i] > tokens_per_batch:
            parts.append([])
        parts[-1].append(i)
    batches = [_padded(pairs, np.array(part)) for part in parts]
    shuffled = np.random.default_rng(seed).permutation(len(batches))
    return [batches[i] for i in shuffled]


def _padded(pairs: TokenizedSplit, part: np.ndarray) -> Pairs:
    source, target = (
        side.padded(part, len(part), int(side.lengths[part].max()))
        for side in (pairs.source, pairs.target)
    )
    return source, target


def serve(connection: Any, job: Job) -> None:
    """Answers orders ``(name, *arguments)`` until the other side closes.

    An answer is (result, share of a core used since the last answer); an exception
    is the result of the order that raised it.
    """
    worker: Worker | None = None
    waiting, cpu = time.perf_counter(), time.process_time()
    while True:
        try:
            name, *arguments = connection.recv()
        except EOFError:
            return
        idle = core_share(time.perf_counter() - waiting, time.process_time() - cpu)
        try:
            worker = worker or Worker(job)
            answer = getattr(worker, name)(*arguments), idle
        except Exception as error:  # told to the other side, which raises it
            answer = RuntimeError(f"{type(error).__name__}: {error}"), idle
        waiting, cpu = time.perf_counter(), time.process_time()
        connection.send(answer)


def core_share(seconds: float, cpu_seconds: float) -> float:
    """CPU seconds a second; 0 for a wait too short to tell of its sleep."""
    return cpu_seconds / seconds if seconds > SHORT else 0.0


class Worker:
    """The model, trained and searched; every method returns when its work is done."""

    def __init__(self, job: Job):
        import torch
        from transformers import MarianConfig, MarianMTModel

        torch.set_num_threads(job.threads)
        torch.manual_seed(0)
        settings = marian.model_config(job.config, job.vocabulary_size)
        self._torch, self._config = torch, job.config
        self._model = MarianMTModel(
            MarianConfig(**settings, attn_implementation="sdpa")
        )
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(),
            lr=LEARNING_RATE,
            betas=(job.config.optimizer.beta1, job.config.optimizer.beta2),
            eps=job.config.optimizer.epsilon,
            weight_decay=0.0,
            fused=True,
        )
        self._batches = [tuple(map(self._tensor, pair)) for pair in job.batches]
        self._sources = [self._tensor(source) for source in job.sources]
        self._next = 0

    def _tensor(self, ids: np.ndarray) -> Any:
        return self._torch.from_numpy(ids).long()

    def facts(self) -> dict[str, Any]:
        """Versions, threads and trained parameters."""
        import transformers

        parameters = (p for p in self._model.parameters() if p.requires_grad)
        return {
            "torch": self._torch.__version__,
            "transformers": transformers.__version__,
            "threads": self._torch.get_num_threads(),
            "parameters": sum(p.numel() for p in parameters),
        }

    def peak_memory_bytes(self) -> int | None:
        """The most memory the process has held."""
        return peak_memory_bytes()

    def updates(self, count: int) -> tuple[int, float]:
        """The next ``count`` updates: their real target tokens, and seconds."""
        self._model.train()
        tokens, start = 0, time.perf_counter()
        for _ in range(count):
            source, target = self._batches[self._next % len(self._batches)]
            self._next += 1
            self._update(source, target)
            tokens += int((target != PAD).sum())
        return tokens, time.perf_counter() - start

    def _update(self, source: Any, target: Any) -> None:
        torch, model = self._torch, self._model
        first = torch.full_like(target[:, :1], model.config.decoder_start_token_id)
        logits = model(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=torch.cat([first, target[:, :-1]], 1),
            use_cache=False,
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.view(-1, logits.shape[-1]),
            target.reshape(-1),
            ignore_index=PAD,
            label_smoothing=self._config.regularization.label_smoothing,
        )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        loss.item()

    def search(self, length: int) -> float:
        """Seconds to search all sources, ``length`` tokens each."""
        torch, model = self._torch, self._model
        model.eval()
        start = time.perf_counter()
        with torch.inference_mode():
            for source in self._sources:
                found = model.generate(
                    source,
                    attention_mask=(source != PAD).long(),
                    num_beams=self._config.decode.beam_size,
                    length_penalty=self._config.decode.length_penalty_alpha,
                    min_new_tokens=length,
                    max_new_tokens=length,
                    do_sample=False,
                )
                if found.shape[1] != length + 1:
                    raise ValueError(f"{found.shape[1] - 1} tokens, not {length}")
        return time.perf_counter() - start

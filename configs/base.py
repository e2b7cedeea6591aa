"""The base model of "Attention Is All You Need" on WMT 2014 English-German.

Every default of the project stands here and nowhere else. Numbers are the
paper's (sections 3, 5 and 6.1); where the paper is silent the comment says so.
"""

import ml_collections
from ml_collections.config_dict import placeholder


def get_config() -> ml_collections.ConfigDict:
    """The paper's base model, complete."""
    config = ml_collections.ConfigDict()

    config.model = ml_collections.ConfigDict()
    config.model.architecture = "transformer"
    config.model.num_layers = 6  # of either stack; or of the encoder, where the
    config.model.decoder_layers = placeholder(int)  # decoder has a number of its own
    config.model.d_model = 512
    config.model.d_ff = 2048
    config.model.num_heads = 8
    config.model.d_k = 64
    config.model.d_v = 64
    config.model.positions = "sinusoidal"
    # Sines and cosines in turn over d_model / 2, as in the formula; "halves" is the
    # first code's: all sines, then all cosines, over d_model / 2 - 1.
    config.model.sinusoids = "interleaved"
    config.model.max_length = 1024  # not in the paper; used by learned positions
    config.model.norm = "post"
    config.model.layer_norm_epsilon = 1e-6  # not in the paper; its first code's value
    config.model.tied_embeddings = "all"
    config.model.scale_embeddings = True
    # Of a new embedding; None is d_model**-0.5. Not in the paper.
    config.model.embedding_stddev = placeholder(float)
    config.model.scale_logits = False  # True divides them by sqrt(d_model)
    config.model.compatibility = "scaled_dot"
    config.model.attention_window = placeholder(int)
    config.model.projection_biases = False  # none in the formula; the first code has
    # How whole sequences attend: "own" products of all pairs; "banded", with an
    # attention_window, of what it reaches alone; or jax.nn.dot_product_attention by
    # "xla", or by "cudnn" in half precision on an NVIDIA GPU. Equal within rounding;
    # "banded" draws other masks where attention_dropout_rate is not 0.
    config.model.attention_implementation = "own"
    # What the backward pass computes again instead of keeping it: "layers" all but the
    # input of each layer, "cheap" all but what linear maps put out as well. The same
    # gradients: with "cheap" half the memory of "none", for hardly any time on a CPU.
    config.model.rematerialize = "cheap"
    # Of the other architectures, docs/models.md. Where one of them is chosen, what it
    # does not read of the fields above has to be as config.of_architecture says.
    config.model.recurrent_cell = "lstm"
    config.model.recurrent_attention = "none"  # "additive": Bahdanau et al. 2015
    config.model.reverse_source = False  # True: Sutskever et al. 2014; no attention
    config.model.kernel_width = 3
    config.model.kernel_dilation = "none"  # "doubling": ByteNet's 1, 2, 4, 8, 16
    config.model.dtype = "float32"

    config.regularization = ml_collections.ConfigDict()
    config.regularization.dropout_rate = 0.1
    config.regularization.attention_dropout_rate = 0.0
    config.regularization.activation_dropout_rate = 0.0
    config.regularization.label_smoothing = 0.1
    # eps / V over all classes, as in the work the paper cites (Szegedy et al. 2015);
    # "other_classes" is eps / (V - 1) over the wrong ones (the first code);
    # "other_pieces" is eps / (V - 2), padding left out too.
    config.regularization.label_smoothing_convention = "all_classes"
    # Of the smoothed target: "subtracted" makes the training loss of a perfect model
    # 0, as codes from the first on print it. Gradients are the same.
    config.regularization.label_smoothing_entropy = "kept"

    config.optimizer = ml_collections.ConfigDict()
    config.optimizer.warmup_steps = 4000
    config.optimizer.learning_rate_scale = 1.0
    config.optimizer.beta1 = 0.9
    config.optimizer.beta2 = 0.98
    config.optimizer.epsilon = 1e-9
    config.optimizer.clip_norm = placeholder(float)
    config.optimizer.accumulation_steps = 1

    config.data = ml_collections.ConfigDict()
    config.data.corpus = "wmt14"
    config.data.directory = placeholder(str)
    config.data.source_language = "en"
    config.data.target_language = "de"
    config.data.train_split = "train"
    config.data.validation_split = "validation"  # newstest2013
    config.data.test_split = "test"  # newstest2014
    # Pairs taken out of the training file for each split without a file of its own,
    # and which ones; of corpus "parallel_files" alone.
    config.data.holdout_pairs = placeholder(int)
    config.data.holdout_seed = 0
    config.data.vocabulary_size = 37_000
    config.data.max_train_length = 255  # not in the paper; its first code's limit
    # Training pairs that are left out; the paper says of none (docs/data.md).
    config.data.filter_duplicates = False  # all but the first of equal pairs
    config.data.filter_overlap = False  # a line of which is in validation or test
    config.data.filter_copies = False  # source and target equal
    config.data.filter_max_length_ratio = placeholder(float)  # of words
    config.data.filter_max_words = placeholder(int)  # on either side
    config.data.filter_characters = False  # control characters, U+FFFD
    config.data.length_buckets = 8
    # Rows of so many target positions hold several pairs; None is the paper's way,
    # pairs of similar length in one batch.
    config.data.packed_length = placeholder(int)
    config.data.tokens_per_batch = 25_000

    config.train = ml_collections.ConfigDict()
    config.train.steps = 100_000
    config.train.seed = 0
    config.train.evaluate_every_steps = 5_000
    config.train.checkpoint_every_steps = 1_500  # about ten minutes at 0.4 s
    # Beside steps, what is saved by the clock is only to go on from; without, these
    # are what is kept and averaged, as in the paper, and depend on the machine's speed.
    config.train.checkpoint_every_minutes = placeholder(float)
    config.train.keep_checkpoints = 5
    config.train.log_every_steps = 100
    # For TensorBoard, at every evaluation: greedy translations of so many validation
    # sentences, and pictures of all heads' attention. They move no number.
    config.train.sample_sentences = 8
    config.train.attention_images = False

    config.decode = ml_collections.ConfigDict()
    config.decode.beam_size = 4
    # ((5 + length) / 6)^alpha (Wu et al. 2016); "power" is length^alpha.
    config.decode.length_penalty = "wu2016"
    config.decode.length_penalty_alpha = 0.6
    config.decode.extra_length = 50
    config.decode.average_checkpoints = 1  # Table 3; Table 2 averages 5 or 20
    config.decode.sentences_per_batch = 64
    return config

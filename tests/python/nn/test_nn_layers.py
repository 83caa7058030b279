"""Layers against PyTorch's: equal weights, outputs, buffers and gradients under equal seeds, and texts."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

from nn_helpers import assert_close, integers, ones, tensors_in, wave  # noqa: E402


def layer(name, *args, inputs, **kwargs):
    """One row: how to make the layer, and what to call it with."""
    return pytest.param(lambda t: getattr(t.nn, name)(*args, **kwargs), inputs, id=f"{name}-{args}-{kwargs}")


X, IMAGE, LINE, VOLUME = wave(3, 4), wave(2, 4, 6, 6), wave(2, 4, 9), wave(2, 2, 5, 5, 5)

ROWS = [
    layer("Identity", 1, any=2, inputs=[X]),
    layer("Linear", 4, 3, inputs=[X]),
    layer("Linear", 4, 3, bias=False, inputs=[X]),
    layer("Bilinear", 4, 3, 2, inputs=[X, wave(3, 3)]),
    layer("Conv1d", 4, 6, 3, inputs=[LINE]),
    layer("Conv1d", 4, 6, 3, padding="same", dilation=2, inputs=[LINE]),
    layer("Conv2d", 4, 6, 3, stride=2, padding=1, inputs=[IMAGE]),
    layer("Conv2d", 4, 6, (3, 2), dilation=2, groups=2, bias=False, inputs=[IMAGE]),
    layer("Conv2d", 4, 6, 3, padding=1, padding_mode="reflect", inputs=[IMAGE]),
    layer("Conv2d", 4, 6, 3, padding=(2, 1), padding_mode="circular", inputs=[IMAGE]),
    layer("Conv2d", 4, 6, 3, padding="same", padding_mode="replicate", inputs=[IMAGE]),
    layer("Conv3d", 2, 4, 3, inputs=[VOLUME]),
    layer("ConvTranspose1d", 4, 6, 3, stride=2, inputs=[LINE]),
    layer("ConvTranspose2d", 4, 6, 3, stride=2, padding=1, output_padding=1, inputs=[IMAGE]),
    layer("ConvTranspose3d", 2, 4, 2, groups=2, inputs=[VOLUME]),
    layer("MaxPool1d", 3, inputs=[LINE]),
    layer("MaxPool2d", 3, 2, 1, inputs=[IMAGE]),
    layer("MaxPool2d", 2, return_indices=True, ceil_mode=True, inputs=[wave(1, 2, 5, 5)]),
    layer("MaxPool3d", 2, inputs=[VOLUME]),
    layer("AvgPool1d", 3, 2, inputs=[LINE]),
    layer("AvgPool2d", 3, 2, 1, count_include_pad=False, inputs=[IMAGE]),
    layer("AvgPool2d", 2, divisor_override=3, inputs=[IMAGE]),
    layer("AvgPool3d", 2, inputs=[VOLUME]),
    layer("LPPool1d", 2, 3, inputs=[LINE]),
    layer("LPPool2d", 2, 3, stride=2, inputs=[IMAGE]),
    layer("LPPool3d", 2, 2, inputs=[VOLUME]),
    layer("AdaptiveAvgPool1d", 4, inputs=[LINE]),
    layer("AdaptiveAvgPool2d", (2, None), inputs=[IMAGE]),
    layer("AdaptiveAvgPool3d", 2, inputs=[VOLUME]),
    layer("AdaptiveMaxPool1d", 4, inputs=[LINE]),
    layer("AdaptiveMaxPool2d", (3, 2), return_indices=True, inputs=[IMAGE]),
    layer("AdaptiveMaxPool3d", 2, inputs=[VOLUME]),
    layer("MaxUnpool2d", 2, inputs=[wave(1, 1, 2, 2), lambda t: t.tensor([[[[0, 3], [8, 11]]]])]),
    layer("FractionalMaxPool2d", 2, output_size=3, inputs=[IMAGE]),
    layer("FractionalMaxPool3d", 2, output_ratio=0.5, inputs=[VOLUME]),
    layer("FractionalMaxPool3d", (2, 1, 3), output_size=(2, 4, 2), inputs=[VOLUME]),
    layer("BatchNorm1d", 4, inputs=[X]),
    layer("BatchNorm1d", 4, momentum=None, inputs=[LINE]),
    layer("BatchNorm2d", 4, inputs=[IMAGE]),
    layer("BatchNorm2d", 4, affine=False, track_running_stats=False, inputs=[IMAGE]),
    layer("BatchNorm2d", 4, bias=False, inputs=[IMAGE]),
    layer("BatchNorm3d", 2, inputs=[VOLUME]),
    layer("SyncBatchNorm", 4, inputs=[IMAGE]),
    layer("InstanceNorm1d", 4, inputs=[LINE]),
    layer("InstanceNorm2d", 4, affine=True, track_running_stats=True, inputs=[IMAGE]),
    layer("InstanceNorm2d", 4, inputs=[wave(4, 5, 5)]),
    layer("InstanceNorm3d", 2, affine=True, inputs=[VOLUME]),
    layer("LayerNorm", 4, inputs=[X]),
    layer("LayerNorm", (6, 6), bias=False, inputs=[IMAGE]),
    layer("GroupNorm", 2, 4, inputs=[IMAGE]),
    layer("RMSNorm", 4, inputs=[X]),
    layer("LocalResponseNorm", 3, inputs=[IMAGE]),
    layer("CrossMapLRN2d", 3, inputs=[IMAGE]),
    layer("Embedding", 7, 3, padding_idx=-1, inputs=[integers(2, 5, high=7)]),
    layer("EmbeddingBag", 7, 3, inputs=[integers(2, 5, high=7)]),
    layer("EmbeddingBag", 7, 3, mode="sum", padding_idx=2, inputs=[integers(2, 5, high=7)]),
    layer("EmbeddingBag", 7, 3, mode="max", inputs=[integers(2, 5, high=7)]),
    layer("Dropout", 0.4, inputs=[X]),
    layer("Dropout1d", 0.4, inputs=[LINE]),
    layer("Dropout2d", 0.4, inputs=[IMAGE]),
    layer("Dropout3d", 0.4, inputs=[VOLUME]),
    layer("AlphaDropout", 0.4, inputs=[X]),
    layer("FeatureAlphaDropout", 0.4, inputs=[IMAGE]),
    layer("Threshold", 0.1, 20.0, inputs=[X]),
    layer("ReLU", inputs=[X]),
    layer("RReLU", inputs=[X]),
    layer("Hardtanh", -0.5, 0.6, inputs=[X]),
    layer("ReLU6", inputs=[X]),
    layer("Sigmoid", inputs=[X]),
    layer("Hardsigmoid", inputs=[X]),
    layer("Tanh", inputs=[X]),
    layer("SiLU", inputs=[X]),
    layer("Mish", inputs=[X]),
    layer("Hardswish", inputs=[X]),
    layer("ELU", 1.3, inputs=[X]),
    layer("CELU", 1.3, inputs=[X]),
    layer("SELU", inputs=[X]),
    layer("GLU", inputs=[X]),
    layer("GELU", inputs=[X]),
    layer("GELU", "tanh", inputs=[X]),
    layer("Hardshrink", inputs=[X]),
    layer("LeakyReLU", 0.2, inputs=[X]),
    layer("LogSigmoid", inputs=[X]),
    layer("Softplus", 2, 1, inputs=[X]),
    layer("Softshrink", inputs=[X]),
    layer("PReLU", 4, inputs=[X]),
    layer("Softsign", inputs=[X]),
    layer("Tanhshrink", inputs=[X]),
    layer("Softmin", 1, inputs=[X]),
    layer("Softmax", 1, inputs=[X]),
    layer("Softmax2d", inputs=[IMAGE]),
    layer("LogSoftmax", 1, inputs=[X]),
    layer("Flatten", inputs=[IMAGE]),
    layer("Unflatten", 1, (2, 2), inputs=[X]),
    layer("CircularPad2d", 1, inputs=[IMAGE]),
    layer("ConstantPad1d", 2, 1.5, inputs=[LINE]),
    layer("ReflectionPad2d", (1, 2, 0, 1), inputs=[IMAGE]),
    layer("ReplicationPad3d", 1, inputs=[VOLUME]),
    layer("ZeroPad2d", (1, 2, -1, 0), inputs=[IMAGE]),
    layer("PixelShuffle", 2, inputs=[IMAGE]),
    layer("PixelUnshuffle", 2, inputs=[IMAGE]),
    layer("ChannelShuffle", 2, inputs=[IMAGE]),
    layer("Upsample", scale_factor=2, inputs=[IMAGE]),
    layer("Upsample", size=(4, 9), mode="bilinear", inputs=[IMAGE]),
    layer("Upsample", scale_factor=1.5, mode="bicubic", align_corners=True, inputs=[IMAGE]),
    layer("UpsamplingBilinear2d", scale_factor=2, inputs=[IMAGE]),
    layer("Unfold", (2, 3), padding=1, inputs=[IMAGE]),
    layer("Fold", (4, 5), (2, 2), inputs=[wave(2, 12, 12)]),
    layer("PairwiseDistance", inputs=[X, ones(3, 4)]),
    layer("CosineSimilarity", inputs=[X, ones(3, 4)]),
    layer("L1Loss", inputs=[X, ones(3, 4)]),
    layer("MSELoss", reduction="sum", inputs=[X, ones(3, 4)]),
    layer("SmoothL1Loss", beta=0.5, inputs=[X, ones(3, 4)]),
    layer("HuberLoss", delta=0.5, inputs=[X, ones(3, 4)]),
    layer("CrossEntropyLoss", inputs=[X, integers(3, high=4)]),
    layer("CrossEntropyLoss", label_smoothing=0.1, ignore_index=2, inputs=[X, integers(3, high=4)]),
    layer("NLLLoss", reduction="none", inputs=[X, integers(3, high=4)]),
    layer("KLDivLoss", reduction="batchmean", inputs=[X, lambda t: ones(3, 4)(t) / 4]),
    layer("BCELoss", inputs=[lambda t: wave(3, 4)(t).sigmoid(), lambda t: ones(3, 4)(t) / 3]),
    layer("BCEWithLogitsLoss", inputs=[X, ones(3, 4)]),
    layer("PoissonNLLLoss", full=True, inputs=[X, lambda t: ones(3, 4)(t) * 3]),
    layer("GaussianNLLLoss", inputs=[X, ones(3, 4), lambda t: ones(3, 4)(t) / 2]),
    layer("HingeEmbeddingLoss", inputs=[X, lambda t: wave(3, 4)(t).sign()]),
    layer("SoftMarginLoss", inputs=[X, lambda t: wave(3, 4)(t).sign().long()]),
    layer("MultiLabelSoftMarginLoss", inputs=[X, ones(3, 4)]),
    layer(
        "MultiLabelMarginLoss", inputs=[X, lambda t: t.tensor([[1, 3, -1, 0], [0, -1, 1, 2], [3, 2, 1, 0]])]
    ),
    layer("MultiMarginLoss", p=2, inputs=[X, integers(3, high=4)]),
    layer("CosineEmbeddingLoss", 0.1, inputs=[X, ones(3, 4), lambda t: t.tensor([1, -1, 1])]),
    layer("MarginRankingLoss", 0.1, inputs=[wave(3), ones(3), lambda t: t.tensor([1.0, -1.0, 1.0])]),
    layer("TripletMarginLoss", swap=True, inputs=[X, ones(3, 4), lambda t: -wave(3, 4)(t)]),
    layer("TripletMarginWithDistanceLoss", inputs=[X, ones(3, 4), lambda t: -wave(3, 4)(t)]),
    layer("LinearCrossEntropyLoss", 4, 5, bias=True, inputs=[X, integers(3, high=5)]),
    layer("AdaptiveLogSoftmaxWithLoss", 4, 9, [2, 5], div_value=1.5, inputs=[X, integers(3, high=9)]),
    layer("RNN", 4, 5, 2, inputs=[wave(6, 3, 4)]),
    layer("RNN", 4, 5, nonlinearity="relu", batch_first=True, inputs=[wave(6, 3, 4)]),
    layer("LSTM", 4, 5, 2, bidirectional=True, inputs=[wave(6, 3, 4)]),
    layer("LSTM", 4, 5, proj_size=3, bias=False, inputs=[wave(6, 4)]),
    layer("GRU", 4, 5, 2, batch_first=True, inputs=[wave(3, 6, 4), wave(2, 3, 5)]),
    layer("RNNCell", 4, 5, inputs=[X]),
    layer("LSTMCell", 4, 5, inputs=[X]),
    layer("GRUCell", 4, 5, bias=False, inputs=[X, wave(3, 5)]),
    layer("MultiheadAttention", 4, 2, inputs=[wave(5, 3, 4)] * 3),
    layer(
        "MultiheadAttention",
        4,
        2,
        kdim=3,
        vdim=2,
        batch_first=True,
        add_bias_kv=True,
        add_zero_attn=True,
        inputs=[wave(2, 5, 4), wave(2, 6, 3), wave(2, 6, 2)],
    ),  # fmt: skip
    layer("TransformerEncoderLayer", 4, 2, 8, dropout=0.0, inputs=[wave(5, 3, 4)]),
    layer(
        "TransformerDecoderLayer",
        4,
        2,
        8,
        dropout=0.0,
        norm_first=True,
        activation="gelu",
        inputs=[wave(5, 3, 4), wave(6, 3, 4)],
    ),  # fmt: skip
    layer("Transformer", 4, 2, 1, 1, 8, dropout=0.0, inputs=[wave(5, 3, 4), wave(6, 3, 4)]),
]


def lists(tensors):
    return [None if t is None else t.tolist() for t in tensors]


def run(t, make, inputs, training):
    """Everything that can be observed of one forward and backward."""
    t.manual_seed(4)
    module = make(t).train(training)
    args = [make_input(t) for make_input in inputs]
    args = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
    before = {name: value.tolist() for name, value in module.state_dict().items()}
    t.manual_seed(5)
    outputs = tensors_in(module(*args), t)
    differentiable = [o for o in outputs if o.requires_grad]
    if differentiable:
        sum((o * o).sum() for o in differentiable).backward()
    return {
        "repr": repr(module),
        "before": before,
        "after": {name: value.tolist() for name, value in module.state_dict().items()},
        "shapes": [list(o.shape) for o in outputs],
        "outputs": lists(outputs),
        "input gradients": lists([a.grad for a in args]),
        "gradients": {
            name: None if p.grad is None else p.grad.tolist() for name, p in module.named_parameters()
        },
    }


@pytest.mark.parametrize("make, inputs", ROWS)
def test_layer_does_what_pytorchs_does(make, inputs):
    for training in (True, False):
        ours = run(rushlight, make, inputs, training)
        theirs = run(torch, make, inputs, training)
        assert_close(ours, theirs)


REFUSED = {
    "conv groups": lambda t: t.nn.Conv2d(3, 4, 3, groups=2),
    "conv out groups": lambda t: t.nn.Conv2d(4, 3, 3, groups=2),
    "conv no groups": lambda t: t.nn.Conv2d(4, 3, 3, groups=0),
    "conv same stride": lambda t: t.nn.Conv2d(4, 4, 3, padding="same", stride=2),
    "transposed mode": lambda t: t.nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"),
    "transposed size count": lambda t: t.nn.ConvTranspose2d(4, 4, 3, 2)(t.zeros(1, 4, 3, 3), output_size=[3]),
    "transposed size": lambda t: t.nn.ConvTranspose2d(4, 4, 3, 2)(t.zeros(1, 4, 3, 3), output_size=[20, 20]),
    "norm dims 1": lambda t: t.nn.BatchNorm1d(3)(t.zeros(3)),
    "norm dims 2": lambda t: t.nn.BatchNorm2d(3)(t.zeros(3)),
    "norm eps": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), None, None, training=True, eps=-1.5),
    "instance norm dims": lambda t: t.nn.InstanceNorm2d(3)(t.zeros(2, 5)),
    "instance norm features": lambda t: t.nn.InstanceNorm1d(3, affine=True)(t.zeros(2, 5, 4)),
    "group norm": lambda t: t.nn.GroupNorm(3, 4),
    "embedding padding": lambda t: t.nn.Embedding(3, 4, padding_idx=5),
    "embedding weight": lambda t: t.nn.Embedding(3, 4, _weight=t.zeros(2, 2)),
    "embedding pretrained": lambda t: t.nn.Embedding.from_pretrained(t.zeros(3)),
    "fractional none": lambda t: t.nn.FractionalMaxPool2d(2),
    "fractional both": lambda t: t.nn.FractionalMaxPool2d(2, 2, 2),
    "fractional ratio": lambda t: t.nn.FractionalMaxPool2d(2, output_ratio=2),
    "circular dims": lambda t: t.nn.CircularPad2d(1)(t.zeros(1)),
    "unflatten size": lambda t: t.nn.Unflatten(1, 3),
    "unflatten element": lambda t: t.nn.Unflatten(1, (3, "a")),
    "dropout": lambda t: t.nn.Dropout(2),
    "hardtanh": lambda t: t.nn.Hardtanh(1, 0),
    "softmax2d": lambda t: t.nn.Softmax2d()(t.zeros(1)),
    "triplet": lambda t: t.nn.TripletMarginLoss(margin=-1),
    "multi margin": lambda t: t.nn.MultiMarginLoss(p=3),
    "huber": lambda t: t.nn.HuberLoss(delta="x"),
    "adaptive cutoffs": lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]),
    "adaptive target": lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(t.zeros(1, 4), t.tensor([20])),
    "rnn nonlinearity": lambda t: t.nn.RNN(3, 4, nonlinearity="x"),
    "rnn dropout": lambda t: t.nn.LSTM(3, 4, dropout=2),
    "rnn proj": lambda t: t.nn.GRU(3, 4, proj_size=1),
    "rnn bias": lambda t: t.nn.LSTM(3, 4, bias="True"),
    "rnn input dims": lambda t: t.nn.LSTM(3, 4)(t.zeros(2)),
    "rnn input size": lambda t: t.nn.LSTM(3, 4)(t.zeros(2, 2, 5)),
    "rnn dtype": lambda t: t.nn.LSTM(3, 4)(t.zeros(2, 2, 3, dtype=t.float64)),
    "rnn state dims": lambda t: t.nn.GRU(3, 4)(t.zeros(2, 2, 3), t.zeros(1)),
    "rnn state size": lambda t: t.nn.GRU(3, 4)(t.zeros(2, 2, 3), t.zeros(1, 2, 5)),
    "lstm state size": lambda t: t.nn.LSTM(3, 4)(t.zeros(2, 2, 3), (t.zeros(1, 2, 3), t.zeros(1, 2, 4))),
    "cell dims": lambda t: t.nn.LSTMCell(3, 4)(t.zeros(2, 2, 3)),
    "cell input": lambda t: t.nn.LSTMCell(3, 4)(t.zeros(2, 4)),
    "cell state": lambda t: t.nn.LSTMCell(3, 4)(t.zeros(2, 3), (t.zeros(2, 5), t.zeros(2, 4))),
    "attention heads": lambda t: t.nn.MultiheadAttention(4, 3),
    "attention sizes": lambda t: t.nn.MultiheadAttention(0, 3),
    "attention dims": lambda t: t.nn.MultiheadAttention(4, 2)(
        t.zeros(2, 4), t.zeros(2, 3, 4), t.zeros(2, 3, 4)
    ),
    "attention mask": lambda t: t.nn.MultiheadAttention(4, 2)(
        *[t.zeros(2, 3, 4)] * 3, attn_mask=t.zeros(3, 3)
    ),
    "attention causal": lambda t: t.nn.MultiheadAttention(4, 2)(*[t.zeros(2, 3, 4)] * 3, is_causal=True),
    "transformer activation": lambda t: t.nn.TransformerEncoderLayer(4, 2, activation="x"),
    "transformer batch": lambda t: t.nn.Transformer(4, 2, 1, 1)(t.zeros(2, 3, 4), t.zeros(2, 2, 4)),
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_misuse_is_refused_with_pytorchs_message(program):
    with pytest.raises(Exception) as theirs:
        program(torch)
    with pytest.raises(theirs.type) as ours:
        program(rushlight)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "padding", "both"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_masks(mask, need_weights):
    def program(t):
        t.manual_seed(0)
        attention = t.nn.MultiheadAttention(8, 2, batch_first=True)
        x = wave(2, 5, 8)(t)
        causal = t.nn.Transformer.generate_square_subsequent_mask(5)
        options = {
            "none": {},
            "causal": {"attn_mask": causal, "is_causal": True},
            "bool": {"attn_mask": causal != 0},
            "padding": {"key_padding_mask": t.arange(5).reshape(1, 5) > t.tensor([[4], [2]])},
            "both": {"attn_mask": causal, "key_padding_mask": wave(2, 5)(t)},
        }[mask]
        out, weights = attention(x, x, x, need_weights=need_weights, **options)
        per_head = attention(x, x, x, average_attn_weights=False, **options)[1]
        return [out.tolist(), None if weights is None else weights.tolist(), per_head.tolist()]

    assert_close(program(rushlight), program(torch))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(name, bidirectional):
    def program(t):
        t.manual_seed(0)
        rnn = getattr(t.nn, name)(3, 4, 2, bidirectional=bidirectional)
        packed = t.nn.utils.rnn.pack_sequence(
            [wave(2, 3)(t), wave(5, 3)(t), wave(3, 3)(t)], enforce_sorted=False
        )
        out, state = rnn(packed)
        padded, lengths = t.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=6)
        states = [s.tolist() for s in tensors_in(state, t)]
        sum(s.sum() for s in tensors_in(state, t)).backward()
        grads = {n: p.grad.tolist() for n, p in rnn.named_parameters() if p.grad is not None}
        return [out.data.tolist(), out.batch_sizes.tolist(), padded.tolist(), lengths.tolist(), states, grads]

    ours, theirs = program(rushlight), program(torch)
    for mine, reference in zip(ours, theirs):
        assert_close(mine, reference)


def test_dropout_between_recurrent_layers_is_drawn_as_pytorchs():
    def program(t):
        t.manual_seed(0)
        return t.nn.LSTM(3, 4, 3, dropout=0.5)(wave(5, 2, 3)(t))[0].tolist()

    assert_close(program(rushlight), program(torch))


def test_sync_batchnorm_conversion():
    def program(t):
        net = t.nn.Sequential(t.nn.Conv2d(3, 4, 1), t.nn.Sequential(t.nn.BatchNorm2d(4)))
        return repr(t.nn.SyncBatchNorm.convert_sync_batchnorm(net))

    assert program(rushlight) == program(torch)


def test_old_batchnorm_states_without_a_count_load():
    state = rushlight.nn.BatchNorm1d(3).state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    assert "matched" in repr(rushlight.nn.BatchNorm1d(3).load_state_dict(state))

"""Operators that others call for their users refuse what those never pass: found by hostile.py."""

import pytest

import rushlight

attend = rushlight._scaled_dot_product_flash_attention_for_cpu
gradients = rushlight._scaled_dot_product_flash_attention_for_cpu_backward
NAMES = ["grad_out", "query", "key", "value", "out", "logsumexp"]


def _operands(dtype=rushlight.float32):
    query, key, value = (rushlight.rand(2, heads, n, 4, dtype=dtype) for heads, n in ((6, 5), (3, 7), (3, 7)))
    out, logsumexp = attend(query, key, value)
    return dict(zip(NAMES, [rushlight.ones_like(out), query, key, value, out, logsumexp], strict=True))


OTHERS = {
    "dimensions": lambda t: t[0],
    "one dimension": lambda t: t.reshape(-1),
    "none": lambda t: t.new_ones(()),
    "columns": lambda t: t[..., :-1],
    "rows": lambda t: t[:, :, 1:],
    "heads": lambda t: t[:, 1:],
    "elements": lambda t: t[:0],
    "wider": lambda t: t.double(),
    "integers": lambda t: t.int(),
    "place": lambda t: t.to("meta"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", OTHERS)
def test_gradients_of_attention_ask_for_operands_that_fit(name, other):
    operands = _operands()
    operands[name] = OTHERS[other](operands[name])
    with pytest.raises(RuntimeError):
        gradients(**operands, dropout_p=0.0, is_causal=False)


def test_gradients_of_attention_take_a_mask_that_broadcasts_and_no_dropout():
    operands = _operands()
    with pytest.raises(RuntimeError, match="expand"):
        gradients(**operands, dropout_p=0.0, is_causal=False, attn_mask=rushlight.zeros(4, 7))
    with pytest.raises(RuntimeError, match="dropout"):
        gradients(**operands, dropout_p=0.5, is_causal=False)
    with pytest.raises(RuntimeError, match="attn_mask dtype"):
        gradients(**operands, dropout_p=0.0, is_causal=False, attn_mask=rushlight.zeros(5, 7).int())


@pytest.mark.parametrize("dtype", [rushlight.float64, rushlight.float32, rushlight.bfloat16])
def test_gradients_of_attention_are_those_of_the_graph(dtype):
    operands = _operands(dtype)
    found = gradients(**operands, dropout_p=0.0, is_causal=False)
    leaves = [operands[name].detach().requires_grad_() for name in ("query", "key", "value")]
    attend(*leaves)[0].backward(operands["grad_out"])
    for leaf, got in zip(leaves, found, strict=True):
        rushlight.testing.assert_close(got, leaf.grad, rtol=0, atol=0)


def test_gradients_of_attention_on_devices_ask_for_the_sums_of_their_operands():
    backward = rushlight._scaled_dot_product_efficient_attention_backward
    x = rushlight.empty(2, 3, 5, 4, device="meta")
    bias = rushlight.empty(5, 5, device="meta")
    place = rushlight.empty((), dtype=rushlight.int64, device="meta")

    def call(grad, logsumexp, p=0.0):
        return backward(grad, x, x, x, bias, x, logsumexp, place, place, p, [True] * 4)

    assert [t.shape for t in call(x, x[..., 0])] == [x.shape] * 3 + [bias.shape]
    sums = x[..., 0]
    for grad, logsumexp, p in [(x[0], sums, 0), (x, sums[:, 0], 0), (x, sums.half(), 0), (x, sums, 2)]:
        with pytest.raises(RuntimeError):
            call(grad, logsumexp, p)


def test_a_search_for_ranges_ends_where_its_steps_are_lost_in_rounding():
    x = rushlight.tensor([-0.75, 0.5, 1.0, 3.0])
    most, least = rushlight.choose_qparams_optimized(x, 4, 2**40, 0.16, 8)
    assert -0.75 <= least.item() < most.item() <= 3.0


@pytest.mark.parametrize("sizes", [(-1, 2, 2), (2**63 - 1, 2, 2), (2, -1, 2), (2, 2, -1)])
def test_indices_have_no_negative_sizes(sizes):
    starts, places = rushlight.tensor([0, 1, 2]), rushlight.tensor([1, 0])
    with pytest.raises(RuntimeError, match="cannot be"):
        rushlight._validate_compressed_sparse_indices(True, starts, places, *sizes)


def test_bags_without_indices_need_memory_for_their_sums():
    table = rushlight.ops.quantized.embedding_bag_byte_prepack(rushlight.rand(3, 4))
    bags = rushlight.empty(2**40, 0, dtype=rushlight.int64)
    with pytest.raises(RuntimeError, match="memory"):
        rushlight.ops.quantized.embedding_bag_byte_rowwise_offsets(table, bags)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 2)])
def test_settings_that_are_no_single_number_are_not_read(shape):
    x, one, other = rushlight.ones(2), rushlight.ones(1), rushlight.ones(shape)
    for scale, zero in [(other, one), (one, other)]:
        with pytest.raises((RuntimeError, IndexError), match="cannot be converted to Scalar|out of range"):
            rushlight._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -1, 2)


def test_a_scale_of_losses_without_elements_is_refused():
    none, one = rushlight.ones(0), rushlight.ones(1)
    steps = one.int()
    for scale, grown, infinite in [(none, steps, one), (one, steps[:0], one), (one, steps, none)]:
        with pytest.raises(RuntimeError, match="0 elements cannot be converted to Scalar"):
            rushlight._amp_update_scale_(scale, grown, infinite, 2.0, 0.5, 10)


ops = rushlight.ops.aten
IMAGE, ROW, CELL = rushlight.ones(2, 3, 4, 4), rushlight.ones(2, 3), rushlight.ones(2, 5)
PIXELS = IMAGE.contiguous(memory_format=rushlight.channels_last)
PLACES, GRID = rushlight.zeros(2, 3, dtype=rushlight.int64), rushlight.zeros(2, 4, 4, 2)
GATES, BAGS = rushlight.ones(2, 12), rushlight.tensor([0, 1])


def bag_gradients(grad=ROW, counts=BAGS + 1, places=BAGS[:0], mode=0):
    return ops._embedding_bag_gradients(
        grad, rushlight.ones(4, 3), BAGS, BAGS, counts, places, False, mode, None, False, -1, 1
    )


MISFITS = {
    "scores without classes": lambda: rushlight._margin_loss(ROW[:, :0], PLACES, False, 1.0, None),
    "targets of other rows": lambda: rushlight._margin_loss(ROW, PLACES[0, :1], False, 1.0, None),
    "losses of other rows": lambda: ops._margin_loss_backward(ROW[0], ROW, PLACES, False, 1.0, None),
    "classes of nothing": lambda: ops.nll_loss_backward(ROW, PLACES, None, 0, -1, ROW.sum(), []),
    "losses of other targets": lambda: ops.nll_loss_backward(ROW, PLACES[0], None, 0, -1, ROW.sum(), [5, 3]),
    "windows of nothing": lambda: ops._adaptive_avg_pool_backward(IMAGE, [], 2),
    "windows in many dimensions": lambda: ops._adaptive_avg_pool_backward(IMAGE, [2, 3, 8, 8], 2**40),
    "means of other rows": lambda: ops._avg_pool_backward(
        IMAGE[:1], [2, 3, 4, 4], [1, 1], [1, 1], [0, 0], False, True, None
    ),
    "means of other windows": lambda: ops._avg_pool_backward(
        IMAGE, [2, 3, 4, 4], [2, 2], [2, 2], [0, 0], False, True, None
    ),
    "means of a line": lambda: ops._avg_pool_backward(
        IMAGE[0, 0, 0], [4, 0], [5, 2], None, [0, 1], True, False, None
    ),
    "means of integers": lambda: ops._avg_pool_backward(
        IMAGE.int(), [2, 3, 4, 4], [1, 1], [1, 1], [0, 0], False, True, None
    ),
    "means without channels": lambda: ops._adaptive_avg_pool_backward(IMAGE[0, 0], [4, 4], 2),
    "maxima at other numbers": lambda: ops._max_pool_backward(IMAGE, IMAGE.int(), [2, 3, 4, 4], 2),
    "maxima elsewhere": lambda: ops._max_pool_backward(IMAGE, IMAGE.long() + 15, [2, 3, 4, 4], 2),
    "maxima before": lambda: ops._max_pool_backward(IMAGE, IMAGE.long() - 2, [2, 3, 4, 4], 2),
    "maxima of pixels elsewhere": lambda: ops._max_pool_backward(PIXELS, PIXELS.long() + 15, [2, 3, 4, 4], 2),
    "maxima of nothing": lambda: ops._max_pool_backward(IMAGE, IMAGE.long(), [5], -1),
    "sizes of nothing": lambda: ops._upsample_backward(IMAGE, [], 3, False, [1.0, 1.0]),
    "a filter without a name": lambda: ops._upsample_backward(IMAGE, [2, 3, 8, 8], 9, False, [1.0, 1.0]),
    "a gradient of another grid": lambda: ops._grid_sampler_backward(IMAGE[:1], IMAGE, GRID, 0, 0, False, 3),
    "a grid of no points": lambda: ops._grid_sampler_backward(IMAGE, IMAGE, ROW, 0, 0, False, 3),
    "no groups": lambda: ops._group_norm_gradients(ROW, ROW, None, ROW[:, 0], ROW[:, 0], 0, 7),
    "channels of another": lambda: ops._batch_norm_gradients(ROW, ROW, None, ROW[0, :1], ROW[0], True, 7),
    "gates of another state": lambda: ops._thnn_fused_lstm_cell_backward(CELL, CELL, CELL, CELL, CELL),
    "gates of another layer": lambda: ops._lstm_layer_backward(
        None, None, None, CELL, CELL, CELL, CELL, [], False, False
    ),
    "a gradient of another state": lambda: ops._thnn_fused_gru_cell_backward(ROW[0], ROW, GATES),
    "a state of one line": lambda: ops._thnn_fused_gru_cell_backward(ROW[0], ROW[0], GATES),
    "gates of a narrow state": lambda: ops._thnn_fused_gru_cell_backward(ROW, ROW, GATES[:, :9]),
    "numbers without a kernel": lambda: ops._thnn_fused_gru_cell_backward(
        *(t.to(rushlight.complex64) for t in (ROW, ROW, GATES))
    ),
    "a bias of other gates": lambda: ops._thnn_fused_gru_cell(
        GATES[:, :9], GATES[:, :9], ROW, rushlight.ones(4, 1, 9)
    ),
    "strides of other dimensions": lambda: ops._as_strided_backward(
        ROW, [1], [2**31, 5], [2**63 - 1], [], -1
    ),
    "strides without end": lambda: ops._as_strided_backward(ROW, [2, 3], [2**62, 1], [2, 3], [3, 1], 0),
    "an offset without end": lambda: ops._as_strided_backward(ROW, [2, 3], [3, 1], [2, 3], [3, 1], -(2**63)),
    "a gradient of another window": lambda: ops._as_strided_backward(
        ROW[:1], [2, 3], [3, 1], [2, 3], [3, 1], 0
    ),
    "values of another window": lambda: ops._as_strided_gather(ROW[:1], [2, 3], [3, 1], [2, 3], [3, 1], 0),
    "a gradient of fewer windows": lambda: ops.unfold_backward(ROW[:1], [2, 6], 1, 3, 3),
    "more parts than lengths": lambda: ops._split_backward([ROW, ROW], [2, 6], [3], 1),
    "no gradient of any part": lambda: ops._unbind_backward([], [2, 3], 0),
    "statistics of other rows": lambda: ops._row_norm_gradients(
        ROW, ROW, ROW[0], ROW[0, :1], ROW[0, :1], 3, 7
    ),
    "weights of other rows": lambda: ops._row_norm_gradients(ROW, ROW, CELL[0], ROW[0, :2], ROW[0, :2], 3, 7),
    "rows of a fraction": lambda: ops._row_norm_gradients(ROW, ROW, ROW[0], ROW[0, :1], ROW[0, :1], 4, 7),
    "numbers of other bags": lambda: bag_gradients(counts=BAGS.new_ones(1)),
    "numbers of another dtype": lambda: bag_gradients(counts=BAGS.int()),
    "gradients of other bags": lambda: bag_gradients(grad=ROW[:1]),
    "places of no maxima": lambda: bag_gradients(mode=2),
    "maxima of no rows": lambda: bag_gradients(mode=2, places=PLACES + 4),
    "a stride of nothing": lambda: ops._conv_input_gradient(
        IMAGE, IMAGE, [2, 3, 4, 4], [], [0, 0], [1, 1], 1
    ),
    "an image without a batch": lambda: ops._conv_weight_gradient(ROW, ROW, [2], [1], [0], [1], 1),
    "padding of another image": lambda: ops._pad_with_mode_backward(ROW, [2, 3], [1, 1], "reflect"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_gradients_are_refused_that_do_not_fit(misfit):
    with pytest.raises(RuntimeError):
        MISFITS[misfit]()


def test_a_matrix_of_no_rows_is_packed_at_once():
    """Of 2^40 columns, which took as many steps."""
    assert ops._pack_matrix(rushlight.ones(2**40, 0).t()).numel() == 0

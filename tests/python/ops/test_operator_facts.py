"""What other layers ask of operators, as traits on their records: each is true of what the operator does."""

import pytest
from engine import arguments, flatten, resolve
from loader import ROWS, main_dtype, records_of, samples

import rushlight
from rushlight._operators.traits import layers, names_of
from rushlight.export._pt2_operators import _NAMES as PYTORCHS_NAMES

RECORDS = rushlight._C._operator_records()
aten = rushlight.ops.aten


def name_of(record):
    return f"{record['space']}::{record['name']}.{record['overload']}"


def results_of(row):
    for sample in samples(row, main_dtype(row)):
        args, kwargs = arguments(rushlight, sample, main_dtype(row))
        yield args, flatten(resolve(rushlight, row.name)(*args, **kwargs))


def rows_where(fits):
    rows = [(row, [r["traits"] for r in records_of(row)]) for row in ROWS]
    return [pytest.param(row, id=row.id) for row, traits in rows if traits and all(map(fits, traits))]


def has_shared_elements(t):
    places = rushlight.arange(t.untyped_storage().nbytes() // t.element_size())
    return places.as_strided(t.shape, t.stride(), t.storage_offset()).unique().numel() < t.numel()


@pytest.mark.parametrize("row", rows_where(lambda t: t.family == "view" and not t.overlapping))
def test_elements_of_other_views_are_apart(row):
    for args, results in results_of(row):
        if has_shared_elements(args[0]):
            continue
        assert not any(has_shared_elements(t) for t in results)


def test_overlapping_views_show_one_element_twice():
    views = {
        "as_strided": lambda x: x.as_strided((2, 2), (1, 1)),
        "expand": lambda x: x.expand(2, 4),
        "unfold": lambda x: x.unfold(0, 3, 1),
    }
    assert set(views) == names_of(lambda t: t.overlapping)
    for view in views.values():
        assert has_shared_elements(view(rushlight.arange(4.0)))


@pytest.mark.parametrize("row", rows_where(lambda t: t.elementwise))
def test_elements_are_truth_values_where_the_record_says_so(row):
    says = {r["traits"].gives_bool for r in records_of(row)}
    for args, results in results_of(row):
        dtypes = {a.dtype for a in args if isinstance(a, rushlight.Tensor)}
        if len(results) == 1 and dtypes and rushlight.bool not in dtypes:
            assert {results[0].dtype == rushlight.bool} == says


def test_values_are_read_where_pytorch_says_so():
    oracle = pytest.importorskip("torch")
    compared = 0
    for record in RECORDS:
        packet = None if record["space"] else getattr(oracle.ops.aten, record["name"], None)
        theirs = getattr(packet, record["overload"] or "default", None)
        if theirs is not None:
            compared += 1
            reads = oracle.Tag.data_dependent_output in theirs.tags
            assert record["traits"].reads_values == reads, name_of(record)
    assert compared > 500


LIMITED = [row for row in ROWS if any(r["traits"].limits for r in records_of(row))]


@pytest.mark.parametrize("row", LIMITED, ids=lambda row: row.id)
def test_elements_stay_or_become_a_limit(row):
    for args, results in results_of(row):
        if sum(isinstance(a, rushlight.Tensor) for a in args) > 1:
            continue  # another overload, with a limit for each element
        x, y = args[0].flatten(), results[0].flatten()
        changed = (x != y) & ~(x.isnan() & y.isnan())
        assert rushlight.unique(y[changed]).numel() <= 2
        assert not (y[x.argsort()].diff() < 0).any()


def test_limits_are_said_of_what_limits():
    limited = names_of(lambda traits: traits.limits)
    assert limited == {"relu", "hardtanh", "clamp", "clamp_min", "clamp_max"} and len(LIMITED) > 4


def is_absent_in_pytorch(record, oracle):
    name = record["name"] if record["space"] in ("", "nn") else f"{record['space']}_{record['name']}"
    name = PYTORCHS_NAMES.get(name, name)  # as archives name it
    return getattr(oracle.ops.aten, name, None) is None


def test_what_pytorch_lacks_says_so():
    """Graphs may hold all but composites that are taken apart; archives name what PyTorch has."""
    oracle = pytest.importorskip("torch")
    for record in RECORDS:
        if record["space"] not in ("", "nn", "linalg", "fft", "special"):
            continue
        absent = is_absent_in_pytorch(record, oracle)
        if record["family"] != "composite":
            assert record["traits"].absent_in_pytorch or not absent, name_of(record)
        if record["traits"].absent_in_pytorch:
            assert absent or record["name"] in OTHER_PARAMETERS, name_of(record)


# Operators that take other parameters than PyTorch's of the same name.
OTHER_PARAMETERS = {
    "elu_backward",
    "leaky_relu_backward",
    "log_sigmoid_backward",
    "nll_loss_backward",
    "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward",
    "_thnn_fused_lstm_cell",
    "_thnn_fused_lstm_cell_backward",
}


KEPT_WHOLE = {
    "linear": lambda x: rushlight.nn.functional.linear(x, x),
    "scaled_dot_product_attention": lambda x: rushlight.nn.functional.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("name", sorted(names_of(lambda t: t.kept_whole)))
def test_graphs_keep_whole_what_the_record_says(name):
    seen = []

    def backend(module, inputs, **_):
        seen.extend(getattr(n.target, "_opname", None) for n in module.graph.nodes)
        return module.forward

    x = rushlight.randn(4, 4)
    with rushlight.no_grad():
        given = rushlight.compile(KEPT_WHOLE[name], backend=backend)(x)
    assert name in seen
    assert rushlight.allclose(given, KEPT_WHOLE[name](x), atol=1e-6)


def test_only_composites_are_kept_whole():
    whole = [r for r in RECORDS if r["traits"].kept_whole]
    assert whole and all(r["family"] == "composite" for r in whole)


@pytest.mark.parametrize("name", sorted(layers()))
def test_layers_multiply_by_the_weight_that_the_record_names(name):
    at_input, at_weight, at_bias, turned = layers()[name]
    x, weight, bias = rushlight.randn(5, 3), rushlight.randn(4, 3), rushlight.randn(4)
    expected = x @ weight.t() + (bias if at_bias >= 0 else 0)
    given = {at_input: x, at_weight: weight.t() if turned else weight, at_bias: bias}
    settings = ()
    if name == "convolution":  # of one pixel
        given = {at_input: x[..., None], at_weight: weight[..., None], at_bias: bias}
        settings, expected = ([1], [0], [1], False, [0], 1), expected[..., None]
    operands = [given[i] for i in range(3 if at_bias >= 0 else 2)]
    op = getattr(aten, name.removeprefix("nn::")).default
    assert rushlight.allclose(op(*operands, *settings), expected, atol=1e-5)


RESHAPED = {
    "_set_strides_": lambda x: aten._set_strides_(x, [4], [1], 0, [4, 1]),
    "as_strided_": lambda x: x.as_strided_((2, 2), (1, 2)),
    "resize_": lambda x: x.resize_(3, 3),
    "resize_as_": lambda x: x.resize_as_(rushlight.empty(3, 3)),
    "squeeze_": lambda x: x.squeeze_(),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
}


@pytest.mark.parametrize("name", sorted(names_of(lambda t: t.reshaping != "none")))
def test_operators_reshape_their_operand_as_the_record_says(name):
    x = rushlight.zeros(1, 4)
    place, size, lies = x.data_ptr(), x.untyped_storage().nbytes(), (x.shape, x.stride())
    RESHAPED[name](x)
    assert (x.shape, x.stride()) != lies
    resized = x.untyped_storage().nbytes() > size
    assert resized == (name in names_of(lambda t: t.reshaping == "storage"))
    assert resized or x.data_ptr() == place


def test_what_reshapes_storage_has_no_pure_form():
    from rushlight._functorch.functionalization import FunctionalizeMode

    for change in (RESHAPED["resize_"], RESHAPED["resize_as_"]):
        with FunctionalizeMode(), pytest.raises(NotImplementedError, match="changes a tensor's storage"):
            change(rushlight.zeros(1, 4))


@pytest.mark.parametrize("name", sorted(names_of(lambda t: t.variadic)))
def test_tensors_of_a_list_may_be_given_one_by_one(name):
    x, y = rushlight.arange(2.0), rushlight.arange(2.0) + 1
    first = ("i,i->i",) if name == "einsum" else ()
    named = {"indexing": "ij"} if name == "meshgrid" else {}
    function = getattr(rushlight._C, name, None) or getattr(rushlight, name)
    apart, together = function(*first, x, y, **named), function(*first, [x, y], **named)
    for a, b in zip(flatten(apart), flatten(together), strict=True):
        assert rushlight.equal(a, b)


def test_other_lists_are_given_as_one():
    for name in ("cat", "stack", "hstack"):
        assert name not in names_of(lambda t: t.variadic)
        with pytest.raises(TypeError):
            getattr(rushlight, name)(rushlight.ones(2), rushlight.ones(2))


def test_fake_operands_may_lie_apart_where_the_record_says_so():
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        there, here = rushlight.empty(4, device="cuda"), rushlight.zeros(3, dtype=rushlight.int64)
        assert there[here].device.type == "cuda"
        assert rushlight.zeros(3).copy_(there[:3]).device.type == "cpu"
        with pytest.raises(RuntimeError, match="two different devices"):
            there[:3] + rushlight.zeros(3)


def test_distinct_slices_of_nothing_are_new():
    for shape, dim in (((0,), 0), ((5, 0, 5), 1)):
        x = rushlight.zeros(shape)
        for found in (rushlight.unique(x, dim=dim), rushlight.unique_consecutive(x, dim=dim)):
            assert found is not x and found.shape == x.shape
            assert found.untyped_storage()._cdata != x.untyped_storage()._cdata

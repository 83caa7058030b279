"""What records say of operators besides their schemas is true, and Python's layers read it."""

import pytest
from engine import arguments, flatten, resolve
from loader import ROWS, main_dtype, records_of, samples

import rushlight
from rushlight._operators.traits import names_of, unmarked_writes

RECORDS = rushlight._C._operator_records()
BY_SCHEMA = {record["schema"]: record["traits"] for record in RECORDS}
aten = rushlight.ops.aten


def traits_of(name, overload=""):
    found = [r["traits"] for r in RECORDS if (r["name"], r["overload"]) == (name, overload)]
    assert len(found) == 1
    return found[0]


def test_an_overload_shows_its_traits():
    traits = aten.add.Tensor.traits
    assert (traits.family, traits.batching, traits.aliasing) == ("pointwise", "pointwise", "fresh")
    assert traits.elementwise and not traits.random and traits.numbers == "all"
    assert traits.node == "AddBackward0"


def test_examples_are_computed_alone():
    x, weight = rushlight.randn(4, 3, 6, 6), rushlight.randn(5, 3, 3, 3)
    settings = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    whole = aten.convolution(x, weight, *settings)
    alone = [aten.convolution(one, weight, *settings) for one in x.split(1)]
    assert aten.convolution.default.traits.examples == 1
    assert rushlight.allclose(whole, rushlight.cat(alone), atol=1e-5)
    joined = [aten.cat([one, one], 1) for one in x.split(1)]
    assert aten.cat.default.traits.examples == 1
    assert rushlight.equal(aten.cat([x, x], 1), rushlight.cat(joined))


def keeps_elements(row):
    """Whether each sample's result has the elements of the first operand in their order."""
    for sample in samples(row, main_dtype(row)):
        args, kwargs = arguments(rushlight, sample, main_dtype(row))
        results = flatten(resolve(rushlight, row.name)(*args, **kwargs))
        if len(results) != 1 or results[0].dtype != args[0].dtype:
            return False
        if not rushlight.equal(results[0].reshape(-1), args[0].reshape(-1)):
            return False
    return True


def rows_of(fits):
    rows = [(row, [r["traits"] for r in records_of(row)]) for row in ROWS]
    return [pytest.param(row, id=row.id) for row, traits in rows if traits and all(map(fits, traits))]


@pytest.mark.parametrize("row", rows_of(lambda traits: traits.same_elements))
def test_elements_stay_in_order(row):
    assert keeps_elements(row)


@pytest.mark.parametrize("row", rows_of(lambda traits: traits.family == "view" and not traits.same_elements))
def test_other_views_give_other_elements(row):
    assert not keeps_elements(row)


def test_traits_cannot_be_changed():
    with pytest.raises(AttributeError):
        aten.add.Tensor.traits.family = "view"


def test_no_trait_is_left_to_the_family():
    for schema, traits in BY_SCHEMA.items():
        assert "by family" not in traits, schema


def test_families_that_mean_something():
    """Few operators belong to no family: what such a one is cannot be read from its record."""
    other = [schema for schema, traits in BY_SCHEMA.items() if traits.family == "other"]
    assert len(other) <= 25, other


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["schema"].split("(")[0])
def test_traits_agree_with_the_record(record):
    traits, schema = record["traits"], record["schema"]
    written = "!)" in schema.split("->")[0]
    if traits.family == "view" and not written:
        assert traits.aliasing == "view"
        shows = "Tensor(a" in schema or record["name"].startswith("_unsafe_")
        assert shows, "a view says in its schema whose memory it shares"
    if traits.family == "pointwise":
        assert traits.elementwise and traits.devices
    if traits.out != "castable" or traits.out_apart:
        assert record["out"]
    if traits.inplace_function:
        assert record["inplace"]
    if traits.data_dependent_shape:
        assert traits.batching.startswith(("refused", "loop"))  # never of all examples at once
    if traits.tangent not in ("none", "composite", "linear"):
        assert record["differentiable"] or record["refusal"]
    if traits.one_node:
        assert traits.family == "composite"
    assert not traits.out_apart >> schema.split("->")[0].count(",") + 1


@pytest.mark.parametrize("name", sorted(names_of(lambda t: t.data_dependent_shape)))
def test_shapes_that_depend_on_values_are_refused_by_fake_tensors(name):
    from rushlight._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

    with FakeTensorMode() as mode:
        x = mode.from_tensor(rushlight.ones(3, dtype=rushlight.int64))
        call = {
            "masked_select": lambda: rushlight.masked_select(x, x > 0),
            "repeat_interleave": lambda: rushlight.repeat_interleave(x),
            "bincount": lambda: rushlight.bincount(x),
            "nonzero": lambda: rushlight.nonzero(x),
            "_unique2": lambda: rushlight.unique(x),
            "unique_dim": lambda: rushlight.unique(x, dim=0),
            "unique_consecutive": lambda: rushlight.unique_consecutive(x),
            "nms": lambda: rushlight.ops.torchvision.nms(x[:, None].expand(3, 4), x, 0.5),
        }[name]
        with pytest.raises(DynamicOutputShapeException):
            call()


def pools(module):
    functional, x = module.nn.functional, module.ones(1, 1, 4, 4, 4).bfloat16()
    return {
        "adaptive_avg_pool3d": lambda: functional.adaptive_avg_pool3d(x, 2),
        "adaptive_max_pool3d": lambda: functional.adaptive_max_pool3d(x, 2),
        "avg_pool3d": lambda: functional.avg_pool3d(x, 2),
        "max_pool3d": lambda: functional.max_pool3d(x, 2),
        "adaptive_avg_pool2d": lambda: functional.adaptive_avg_pool2d(x[0], 2),
        "reflection_pad2d": lambda: functional.pad(x[0], (1, 1, 1, 1), "reflect"),
        "replication_pad3d": lambda: functional.pad(x, (1, 1, 1, 1, 1, 1), "replicate"),
        "multi_margin_loss": lambda: functional.multi_margin_loss(x[0, 0, 0], module.tensor([0, 1, 2, 3])),
        "multilabel_margin_loss": lambda: functional.multilabel_margin_loss(
            x[0, 0, 0], module.tensor([[0, -1, 1, 2]] * 4)
        ),
    }


@pytest.mark.parametrize("name", sorted(pools(rushlight)))
def test_autocasting_casts_what_pytorch_casts(name):
    oracle = pytest.importorskip("torch")
    dtypes = []
    for module in (rushlight, oracle):
        with module.autocast("cpu", dtype=module.bfloat16):
            dtypes.append(str(pools(module)[name]().dtype))
    assert dtypes[0] == dtypes[1]


def test_running_statistics_are_written_to_in_training_alone():
    x, mean = rushlight.ones(2, 3), rushlight.zeros(3)
    call = (x, None, None, mean, None, True, 0.1, 1e-5)
    assert unmarked_writes(aten.native_batch_norm.default, call, {}) == [3]
    assert unmarked_writes(aten.native_batch_norm.default, (*call[:5], False, *call[6:]), {}) == []
    assert unmarked_writes(aten.batch_norm.default, call[:5], {"training": True}) == [3]
    assert unmarked_writes(aten.add.Tensor, (x, x), {}) == []

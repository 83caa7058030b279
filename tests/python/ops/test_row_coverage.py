"""Every operator has a row: all records run while the rows do, and their gradients, or it is said why not."""

import warnings

import engine
import pytest
from loader import ALL_RECORDS, ROWS, main_dtype, records_of, samples

import rushlight as rl
from rushlight import _C
from rushlight._operators.entries import _aten_name
from rushlight.utils._python_dispatch import TorchDispatchMode

# What no call of one operator reaches.
COMPILER, DEVICES, TEXTS = (
    "written by the compiler alone: tests/python/graphs",
    "runs on devices: tests/python/devices",
    "takes pages of texts that fit each other: test_paged.py",
)
UNREACHED = {
    "_fused_pointwise": COMPILER,
    "_fused_rows": COMPILER,
    "_convolution_epilogue": COMPILER,
    "_pack_matrix": COMPILER,
    "_packed_product": COMPILER,
    "_row_linear": TEXTS,
    "_write_pages_": TEXTS,
    "_paged_attention": TEXTS,
    "_dropout_and_mask": DEVICES,
    "_dropout_mask": DEVICES,
    "_scaled_dot_product_efficient_attention": DEVICES,
    "_scaled_dot_product_efficient_attention_backward": DEVICES,
    "_fused_update_": "is called by rules of optimizers: tests/python/nn/test_optim_rules.py",
    "_weight_int4pack_mm_for_cpu": "takes what another operator packed: test_quantized_products.py",
    "_gated": "stands in for glu where nobody sees its parts, as this test does: test_one_pass.py",
    "linalg::_powsum": "has no gradient in PyTorch, which rows compare: test_power_sums.py",
    "quantized_batch_norm": "takes quantised tensors: quantization/test_quantized_batch_norm.py",
    "_scaled_mm": "takes float8: test_quantized_products.py",
    "_dyn_quant_pack_4bit_weight": "packs for the next: test_quantized_products.py",
    "_dyn_quant_matmul_4bit": "takes what another operator packed: test_quantized_products.py",
    "_quantized_linear_dynamic": "is called by way of packed weights: test_quantized_layers.py",
}
# Namespaces whose operators have test files of their own.
ELSEWHERE = {
    "jit": "graphs/test_loops_in_files.py",
    "onednn": "test_quantized_layers.py",
    "quantized": "nn/test_quantized_embedding.py",
    "quantized_decomposed": "test_quantized_decomposed.py",
    "torchvision": "graphs/test_export_boxes.py",
}


class Watch(TorchDispatchMode):
    """Notes the records that run; compositions are not seen."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.add(func._entry.index)
        return func(*args, **(kwargs or {}))


def total(tensors):
    return sum((t.abs() if t.is_complex() else t).double().sum() for t in tensors)


def run(row, sample):
    """An operator, and its gradients of both orders as far as they go; as a program does, and as recorded."""
    args, kwargs = engine.arguments(rl, sample, main_dtype(row))
    engine.resolve(rl, row.name)(*args, **kwargs)
    try:
        leaves, call = engine.variables(rl, row, sample, main_dtype(row))
        results = [t for t in engine.tensors_in(call(leaves)) if t.requires_grad]
        if not results:
            return
        rl.autograd.grad(total(results), leaves, retain_graph=True, allow_unused=True)
        first = rl.autograd.grad(total(results), leaves, create_graph=True, allow_unused=True)
        first = [g for g in first if g is not None and g.requires_grad]
        if first:
            rl.autograd.grad(total(first), leaves, allow_unused=True)
    except NotImplementedError:
        return  # no derivative, or none of the second order
    except RuntimeError:
        assert "gradcheck" in row.refused, row.id


def names_of(logs):
    return {event[0] if isinstance(event, tuple) else event.name for log in logs for event in log}


def test_each_record_is_run_by_a_row():
    watch = Watch()
    _C._profiler_start(False, False, False)
    try:
        with watch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in ROWS:
                for sample in samples(row):
                    run(row, sample)
    finally:
        names = names_of(_C._profiler_stop()[0])
    named = {record["schema"] for row in ROWS for record in records_of(row)}
    missing = {
        record["schema"].split("(")[0]
        for index, record in enumerate(ALL_RECORDS)
        if index not in watch.seen
        and record["space"] not in ELSEWHERE
        and not (record["family"] == "composite" and f"aten::{_aten_name(record)}" in names)
        and not (record["family"] == "composite" and record["schema"] in named)
    }
    assert " ".join(sorted(missing - UNREACHED.keys())) == "", "add rows to tests/python/ops/samples_*.py"
    assert sorted(UNREACHED.keys() - missing) == [], "these do run: drop the excuse"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_each_row_names_an_operator(row):
    """A record, or a function of PyTorch's that is composed in Python."""
    if not records_of(row):
        torch = pytest.importorskip("torch")
        assert callable(engine.resolve(torch, row.name)), "neither a record nor a function of PyTorch"

"""Boxes that detectors keep, and regions that they pool, in exported programs, files and ONNX."""

import pytest

import rushlight as torch
import rushlight._torchvision.boxes  # noqa: F401
from rushlight import nn
from rushlight.export import Dim, export, load, load_file, save, save_file

operators = torch.ops.torchvision
COUNTS = (12, 1, 40, 0)


def kept(boxes, scores, threshold):
    """By definition: by falling score, those that no kept one covers by more than the threshold."""
    found = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if all(shared(boxes[i], boxes[k]) <= threshold for k in found):
            found.append(i)
    return torch.tensor(found, dtype=torch.int64)


def shared(a, b):
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    both = (high - low).clamp(min=0).prod()
    return both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)


def example(count, dtype=torch.float32):
    torch.manual_seed(count)
    corners = torch.rand(count, 2, dtype=dtype) * 5
    boxes = torch.cat([corners, corners + torch.rand(count, 2, dtype=dtype) * 5], 1)
    return boxes, (torch.rand(count, dtype=dtype) * 20).round() / 20  # some scores are equal


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", COUNTS)
def test_boxes_are_kept_by_definition(count, dtype):
    boxes, scores = example(count, dtype)
    for threshold in (0.0, 0.4, 1.0):
        assert torch.equal(operators.nms(boxes, scores, threshold), kept(boxes, scores, threshold))


def test_boxes_that_do_not_fit_are_refused():
    boxes, scores = example(3)
    with pytest.raises(RuntimeError, match="boxes should have 4 elements in dimension 1, got 3"):
        operators.nms(boxes[:, :3], scores, 0.5)
    with pytest.raises(RuntimeError, match="same number of elements in dimension 0, got 3 and 2"):
        operators.nms(boxes, scores[:2], 0.5)
    with pytest.raises(RuntimeError, match="same type"):
        operators.nms(boxes, scores.double(), 0.5)


class Detector(nn.Module):
    def forward(self, boxes, scores):
        sure = scores > 0.3
        boxes, scores = boxes[sure], scores[sure]
        best = operators.nms(boxes, scores, 0.4)
        return boxes[best], scores[best]


def exported():
    count = Dim("count")
    return export(Detector(), example(12), dynamic_shapes=({0: count}, {0: count}))


def check(run):
    for count in COUNTS:
        given = example(count)
        for found, wanted in zip(run(*given), Detector()(*given), strict=True):
            assert torch.equal(torch.as_tensor(found), wanted)


def test_exports_archives_and_files_hold_the_operator(tmp_path):
    program = exported()
    assert torch.ops.torchvision.nms.default in [n.target for n in program.graph.nodes]
    save(program, tmp_path / "model.pt2")
    save_file(program, tmp_path / "model.rl")
    for run in (program.module(), load(tmp_path / "model.pt2").module(), load_file(tmp_path / "model.rl")):
        check(run)


def test_onnx_has_its_own(tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    torch.onnx.export(exported(), f=tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    check(lambda *given: session.run(None, dict(zip(names, (t.numpy() for t in given)))))


def test_regions_are_pooled_in_an_export(tmp_path):
    class Pooled(nn.Module):
        def forward(self, images, regions):
            return operators.roi_align(images, regions, 0.5, 3, 2, 2, True)

    def given(count):
        return images, torch.cat([torch.randint(0, 2, (count, 1)).float(), 2 * example(count)[0]], 1)

    images = torch.randn(2, 3, 8, 9)
    program = export(Pooled(), given(4), dynamic_shapes=(None, {0: Dim("count")}))
    save_file(program, tmp_path / "model.rl")
    for count in (4, 1, 9):
        x = given(count)
        for run in (program.module(), load_file(tmp_path / "model.rl")):
            torch.testing.assert_close(run(*x), Pooled()(*x))

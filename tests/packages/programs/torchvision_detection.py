"""torchvision: the operators of its own libraries, which Rushlight brings along: against their definitions,
against torchvision's Python, by finite differences; pictures; a detector that learns."""

import math
import tempfile
from pathlib import Path

import torch
import torchvision
from torch.autograd import gradcheck
from torchvision import io, ops
from torchvision.models import detection
from torchvision.ops.roi_align import _roi_align

torch.manual_seed(0)


def kept_one_by_one(boxes, scores, limit):
    kept = []
    for i in scores.sort(descending=True, stable=True).indices.tolist():
        if all(ops.box_iou(boxes[i : i + 1], boxes[j : j + 1]).item() <= limit for j in kept):
            kept.append(i)
    return kept


boxes = torch.rand(700, 4) * 40
boxes[:, 2:] = boxes[:, :2] + 4 + torch.rand(700, 2) * 12
scores = torch.rand(700)
scores[::7] = 0.5  # equal ones stay in order
for limit in (0.0, 0.3, 0.7):
    assert ops.nms(boxes, scores, limit).tolist() == kept_one_by_one(boxes, scores, limit)
assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
assert ops.nms(torch.zeros(3, 4), torch.ones(3), 0.5).tolist() == [0, 1, 2]  # 0 / 0 covers nothing

x = torch.rand(2, 8, 10, 12, dtype=torch.float64, requires_grad=True)
rois = torch.tensor(
    [[0, 1.0, 1, 7, 8], [1, 0, 0, 9, 5], [0, 2.5, 2.5, 3, 3], [1, -3, 4, 30, 9]], dtype=torch.float64
)
for scale, ratio, aligned in ((0.7, -1, True), (1.0, 2, False), (0.5, 3, True), (1.1, -1, False)):
    here = ops.roi_align(x, rois, (3, 2), scale, ratio, aligned)
    there = _roi_align(x, rois[:3], scale, 3, 2, ratio, aligned)
    torch.testing.assert_close(here[:3], there)  # which takes no region that leaves the image
assert ops.roi_align(x, rois[:0], 2).shape == (0, 8, 2, 2)


def sample(image, y, x):
    """Between four elements; zero further than one element beyond the border."""
    height, width = image.shape[-2:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return torch.zeros_like(image[:, 0, 0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (left + 1 - x) + image[:, top, right] * (x - left)
    lower = image[:, low, left] * (left + 1 - x) + image[:, low, right] * (x - left)
    return upper * (top + 1 - y) + lower * (y - top)


# Two bins of 16.5 columns, one sample in each of 17 equal parts.
steps = [(i + 0.5) / 17 * 16.5 - 3 for i in range(34)]
row = [
    sum(sample(x[1], 4 + (j + 0.5) / 5 * 5, c) for j in range(5) for c in steps[k : k + 17]) / 85
    for k in (0, 17)
]
here = ops.roi_align(x, rois[3:], (1, 2), 1.0, -1, False)
torch.testing.assert_close(here[0, :, 0], torch.stack(row, 1))
for pool in (
    lambda x: ops.roi_align(x, rois, (2, 2), 0.7, -1, True),
    lambda x: ops.roi_pool(x, rois, (2, 2), 0.9),
    lambda x: ops.ps_roi_align(x, rois, (2, 2), 0.8, 2),
    lambda x: ops.ps_roi_pool(x, rois, (2, 2), 0.9),
):
    assert gradcheck(pool, (x,))
pooled = ops.roi_pool(x, torch.tensor([[1, 2.0, 3, 5, 8]], dtype=torch.float64), (2, 1))
assert torch.equal(pooled[0, :, 0, 0], x[1, :, 3:6, 2:6].amax((1, 2)))
whole = ops.ps_roi_pool(x, torch.tensor([[0, 1.0, 2, 5, 6]], dtype=torch.float64), (2, 2))
torch.testing.assert_close(whole[0, 1, 0, 1], x[0, 5, 2:4, 3:5].mean())

weight = torch.rand(4, 4, 3, 3, dtype=torch.float64, requires_grad=True)
offset = (torch.rand(2, 2 * 2 * 9, 4, 5, dtype=torch.float64) - 0.5).requires_grad_()
mask, bias = (torch.rand(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 18, 4, 5), (4,)))
assert gradcheck(
    lambda *t: ops.deform_conv2d(t[0], t[2], t[1], t[4], stride=2, mask=t[3]), (x, weight, offset, mask, bias)
)
still = torch.zeros(2, 18, 10, 12, dtype=torch.float64)
plain = torch.nn.functional.conv2d(x, weight, bias, padding=1, groups=2)
torch.testing.assert_close(ops.deform_conv2d(x, still, weight, bias, padding=1), plain)
still[:, 1::2] = 1  # a column further
torch.testing.assert_close(ops.deform_conv2d(x, still, weight, bias, padding=1)[..., 1:-2], plain[..., 2:-1])

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "picture.png")
    picture = torch.randint(0, 256, (3, 5, 7), dtype=torch.uint8)
    io.write_png(picture, str(path))
    assert io.read_image(str(path)).equal(picture)
    assert io.read_image(str(path), io.ImageReadMode.GRAY).shape == (1, 5, 7)
    smooth = torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8).expand(3, 8, 8)
    assert (io.decode_jpeg(io.encode_jpeg(smooth, 95)).int() - smooth.int()).abs().max() < 12
for refused in (lambda: io.read_image("/nowhere/picture.png"), lambda: io.decode_image(picture.flatten())):
    try:
        refused()
    except RuntimeError as error:
        assert "BytesIO" not in str(error)
    else:
        raise AssertionError("read what is no picture")

torch.manual_seed(0)
model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=2, min_size=96, max_size=96
)
image = torch.zeros(3, 96, 96)
image[:, 30:60, 20:70] = 1
target = {"boxes": torch.tensor([[20.0, 30, 70, 60]]), "labels": torch.tensor([1])}
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []
for _ in range(12):
    loss = sum(model([image], [target]).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert all(map(math.isfinite, losses)) and losses[-1] < 0.8 * losses[0], losses
with torch.no_grad():
    found = model.eval()([image])[0]
assert set(found) == {"boxes", "labels", "scores"} and len(found["boxes"]) == len(found["scores"])
print(torchvision.__version__, [round(x, 3) for x in losses])

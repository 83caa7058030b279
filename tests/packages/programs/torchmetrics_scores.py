"""torchmetrics: classification, regression, image and text scores against values computed by hand."""

import copy
import io
import warnings

import torch
from torchmetrics import Accuracy, MeanMetric, MetricCollection, PearsonCorrCoef, R2Score
from torchmetrics.classification import (
    BinaryAUROC,
    BinaryAveragePrecision,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MultilabelPrecision,
)
from torchmetrics.functional.pairwise import pairwise_cosine_similarity
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanSquaredError, SpearmanCorrCoef
from torchmetrics.text import BLEUScore, WordErrorRate

warnings.simplefilter("ignore")
torch.manual_seed(0)
target = torch.tensor([0, 1, 2, 2, 1, 0])
guess = torch.tensor([0, 2, 2, 2, 1, 1])

accuracy = Accuracy(task="multiclass", num_classes=3, average="micro")
for part in range(0, 6, 2):
    accuracy.update(guess[part : part + 2], target[part : part + 2])
assert abs(accuracy.compute().item() - 4 / 6) < 1e-6
matrix = MulticlassConfusionMatrix(3)(guess, target)
assert matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 2]]
precision, recall = torch.tensor([1, 1 / 2, 2 / 3]), torch.tensor([1 / 2, 1 / 2, 1])
f1 = (2 * precision * recall / (precision + recall)).mean()
assert torch.allclose(MulticlassF1Score(3)(guess, target), f1)

scores = torch.tensor([0.1, 0.4, 0.35, 0.8])
assert BinaryAUROC()(scores, torch.tensor([0, 0, 1, 1])).item() == 0.75
assert abs(BinaryAveragePrecision()(scores, torch.tensor([0, 0, 1, 1])).item() - 0.8333333) < 1e-6
labels = torch.tensor([[1, 0], [1, 1]])
assert MultilabelPrecision(2)(torch.tensor([[0.9, 0.8], [0.2, 0.7]]), labels).item() == 0.75

x, y = torch.randn(50), torch.randn(50)
wanted = torch.corrcoef(torch.stack([x, y]))[0, 1]
assert torch.allclose(PearsonCorrCoef()(x, y), wanted, atol=1e-5)
ranks = torch.stack([x.argsort().argsort(), y.argsort().argsort()]).float()
assert torch.allclose(SpearmanCorrCoef()(x, y), torch.corrcoef(ranks)[0, 1], atol=1e-5)
assert torch.allclose(R2Score()(x, y), 1 - (x - y).square().sum() / (y - y.mean()).square().sum(), atol=1e-5)
assert torch.allclose(pairwise_cosine_similarity(x[None], y[None]), torch.cosine_similarity(x, y, 0))

image = torch.rand(1, 3, 32, 32)
assert abs(StructuralSimilarityIndexMeasure(data_range=1.0)(image, image).item() - 1) < 1e-6
noisy = (image + 0.1).clamp(max=2)
assert abs(PeakSignalNoiseRatio(data_range=1.0)(noisy, image).item() - 20) < 1e-3

assert WordErrorRate()(["this is a test"], ["this was a test"]).item() == 0.25
assert BLEUScore()(["the cat is on the mat"], [["the cat is on the mat"]]).item() == 1

# A collection shares state between its members, survives copies and pickling through state_dict, and resets.
collection = MetricCollection({"mse": MeanSquaredError(), "rmse": MeanSquaredError(squared=False)})
collection.update(x, y)
collection.persistent(True)
file = io.BytesIO()
torch.save(collection.state_dict(), file)
file.seek(0)
other = copy.deepcopy(collection)
other.reset()
other.load_state_dict(torch.load(file))
values = collection.compute()
assert torch.allclose(values["rmse"] ** 2, values["mse"]) and torch.allclose(
    values["mse"], (x - y).square().mean()
)
assert torch.allclose(other["mse"].sum_squared_error, collection["mse"].sum_squared_error)

mean = MeanMetric()
mean.update(torch.tensor([1.0, 2.0]), weight=torch.tensor([1.0, 3.0]))
assert mean.compute().item() == 1.75

prediction = torch.rand(4, requires_grad=True)
MeanSquaredError()(prediction, torch.ones(4)).backward()
assert torch.allclose(prediction.grad, 2 * (prediction.detach() - 1) / 4)

"""timm: models of many families, optimizers, schedules and losses against values of PyTorch 2.13."""

import timm
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch


def made(name, **options):
    torch.manual_seed(0)
    return timm.create_model(name, num_classes=10, **options)


# The loss in training mode of two images, and the sum of the outputs in evaluation mode.
MODELS = {
    "resnet18": ({}, 64, 2.4197, 0.1049),
    "vit_tiny_patch16_224": ({"img_size": 64}, 64, 2.2286, 2.0401),
    "convnext_atto": ({}, 64, 2.4638, -0.5335),
    "mobilenetv3_small_050": ({}, 64, 2.6684, -0.3573),
    "swin_tiny_patch4_window7_224": ({"img_size": 56, "window_size": 7}, 56, 2.1566, -2.6666),
    "regnetx_002": ({}, 64, 2.4102, 0.0561),
    "poolformer_s12": ({}, 64, 2.2809, 0.5462),
    "mobilevit_xxs": ({}, 64, 2.2951, 0.0160),
    "edgenext_xx_small": ({}, 64, 2.3384, -1.2494),
}
for name, (options, size, loss, output) in MODELS.items():
    model = made(name, **options)
    torch.manual_seed(1)
    images = torch.randn(2, 3, size, size)
    torch.manual_seed(2)
    found = torch.nn.functional.cross_entropy(model(images), torch.tensor([1, 2]))
    found.backward()
    assert abs(found.item() - loss) < 2e-3, (name, found.item())
    assert all(p.grad.isfinite().all() for p in model.parameters())
    with torch.no_grad():
        total = model.eval()(images).sum().item()
    assert abs(total - output) < 2e-3, (name, total)

# The loss after three steps of a small network.
OPTIMIZERS = {
    "sgd": 0.01006,
    "adamw": 0.00700,
    "lamb": 0.00700,
    "lion": 0.00332,
    "adafactor": 0.00410,
    "nadam": 0.00438,
    "adabelief": 0.00801,
    "madgrad": 0.00766,
    "adan": 0.00420,
    "lookahead_adam": 0.00700,
    "muon": 0.00707,
    "rmsproptf": 0.01140,
    "mars": 0.00653,
    "lars": 0.01186,
    "cadamw": 0.00479,
}
for name, loss in OPTIMIZERS.items():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimizer = timm.optim.create_optimizer_v2(network, opt=name, lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        found = network(torch.arange(12.0).reshape(3, 4) / 10).square().mean()
        found.backward()
        optimizer.step()
    assert abs(found.item() - loss) < 2e-5, (name, found.item())

features = timm.create_model("resnet18", features_only=True, out_indices=(1, 3))
assert [tuple(x.shape) for x in features(torch.zeros(1, 3, 64, 64))] == [(1, 64, 16, 16), (1, 256, 4, 4)]
schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=10, warmup_t=2)
schedule.step(3)
assert abs(optimizer.param_groups[0]["lr"] - 0.007939) < 1e-6
smooth = timm.loss.LabelSmoothingCrossEntropy()(torch.arange(6.0).reshape(2, 3), torch.tensor([0, 2]))
assert abs(smooth.item() - 1.4076) < 1e-4
average = timm.utils.ModelEmaV3(network, decay=0.5)
with torch.no_grad():
    network[0].bias.fill_(4.0)
average.update(network)
assert not torch.equal(average.module[0].bias, network[0].bias)

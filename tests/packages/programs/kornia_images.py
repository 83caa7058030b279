"""kornia: filters and geometry on a fixed picture."""

import kornia
import torch

x = (
    (torch.arange(2 * 3 * 16 * 16, dtype=torch.float32).reshape(2, 3, 16, 16) * 0.37)
    .sin()
    .abs()
    .requires_grad_()
)
blurred = kornia.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0))
assert blurred.shape == x.shape and blurred.std() < x.std()
torch.testing.assert_close(kornia.geometry.rotate(x, torch.tensor([360.0, 0.0])), x, atol=1e-3, rtol=1e-3)
torch.testing.assert_close(kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(x)), x, atol=1e-4, rtol=1e-4)
assert kornia.losses.ssim_loss(x, x, 5).abs() < 1e-5
kornia.filters.sobel(blurred).sum().backward()
assert x.grad.isfinite().all() and x.grad.abs().sum() > 0

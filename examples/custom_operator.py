"""An operator in C++ with its derivative, compiled when the program starts."""

from common import arguments, figure

import rushlight as torch
from rushlight.utils import cpp_extension

SOURCE = """
#include <rushlight/extension.h>
#include <cmath>

using namespace rushlight;

// sin(a x)^2 / a, element by element: "snake" (Ziyin et al. 2020) without its linear part.
static Tensor ripple(const Tensor& x, double a) {
  const Tensor in = ops::contiguous(x);
  const Tensor out = empty_tensor(x.sizes(), x.dtype());
  const float* from = in.data<float>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < in.numel(); ++i) {
    const double s = std::sin(a * from[i]);
    to[i] = static_cast<float>(s * s / a);
  }
  return out;
}

RUSHLIGHT_LIBRARY(example, m) {
  m.kernel("ripple(Tensor x, float a) -> Tensor", ripple)
      .derivative([](Grad g, In<0> x, Attr<1, double> a) { return g * ops::sin(x * (2 * *a)); });
}
"""


def main():
    given = arguments(__doc__, steps=1)
    cpp_extension.load_inline("ripple_example", SOURCE, build_directory=str(given.out))
    ripple = torch.ops.example.ripple
    x = torch.linspace(-3, 3, 200, requires_grad=True)
    y = x + ripple(x, 2.0)
    y.sum().backward()
    assert x.grad is not None
    exact = 1 + (4 * x).sin()
    print(f"largest error of the derivative {(x.grad - exact).abs().max():.1e}")
    made, axes = figure()
    axes.plot(x.tolist(), y.tolist(), label="snake")
    axes.plot(x.tolist(), x.grad.tolist(), label="derivative")
    axes.legend()
    made.savefig(given.out / "custom_operator.png")


if __name__ == "__main__":
    main()

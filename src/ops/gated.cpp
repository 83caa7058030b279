// Gated linear units: half of a tensor times the logistic function of its other half.
#include <algorithm>

#include "core/parallel.h"
#include "cpu/loops.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/plain.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using cpu::Formula;

constexpr int64_t kTile = 1024;

Tensor first_half(const Tensor& t, int64_t dim) { return ops::narrow(t, dim, 0, t.size(dim) / 2); }
Tensor second_half(const Tensor& t, int64_t dim) {
  const int64_t n = t.size(dim) / 2;
  return ops::narrow(t, dim, n, n);
}
Tensor by_parts(const Tensor& self, int64_t dim) {
  return first_half(self, dim) * ops::sigmoid(second_half(self, dim));
}
Tensor gradient_by_parts(const Tensor& g, const Tensor& self, int64_t dim) {
  const Tensor gate = ops::sigmoid(second_half(self, dim)), first = g * gate;
  return ops::cat({first, first * first_half(self, dim) * (Scalar(1) - gate)}, dim);
}

// A tensor cut along `dim` is [outer, 2, run] in memory.
struct Halves {
  Halves(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : run) *= t.size(d);
    run /= 2;
  }
  // Whether runs are long enough to be walked one by one.
  bool pays() const { return run >= 64 && run * outer >= 2 * kTile; }
  // Calls f(first element of the half, of its tensor, elements) for tiles of halves.
  template <class F>
  void for_tiles(F&& f) const {
    const int64_t tiles = (run + kTile - 1) / kTile;
    parallel_for(0, outer * tiles, std::max<int64_t>(1, kGrainSize / 4 / std::min(run, kTile)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t o = i / tiles, at = i % tiles * kTile;
                     f(o * run + at, 2 * o * run + at, std::min(kTile, run - at));
                   }
                 });
  }
  int64_t outer = 1, run = 1;
};

// Elements in memory as those that formulas compute with, which are floats for halves.
class Elements {
 public:
  explicit Elements(DType type)
      : type_(type), wide_(is_reduced_float(type) ? DType::Float32 : type), size_(size_of(type)) {}
  static int64_t size_of(DType type) { return static_cast<int64_t>(element_size(type)); }
  char* at(const Tensor& t, int64_t i) const { return t.data<char>() + i * size_; }
  const char* read(const char* from, int64_t n, char* tile) const {
    if (type_ == wide_) return from;
    cpu::cast_loop(wide_, type_)(tile, size_of(wide_), from, size_, n);
    return tile;
  }
  char* room(char* to, char* tile) const { return type_ == wide_ ? to : tile; }
  void write(char* to, const char* tile, int64_t n) const {
    if (type_ != wide_) cpu::cast_loop(type_, wide_)(to, size_, tile, size_of(wide_), n);
  }
  void compute(Formula f, char* to, const char* a, const char* b, int64_t n) const {
    char* const data[3] = {to, const_cast<char*>(a), const_cast<char*>(b)};
    cpu::row(f).loop[static_cast<size_t>(wide_)](data, 0, n, nullptr);
  }

 private:
  DType type_, wide_;
  int64_t size_;
};
struct alignas(64) Tile {
  char bytes[kTile * 8];
};

bool in_tiles(const Tensor& t, int64_t dim) {
  return ops::is_plain(t) && is_floating(t.dtype()) && t.is_contiguous() && Halves(t, dim).pays();
}

Tensor gated_kernel(const Call&, const Tensor& self, int64_t dim) {
  if (!in_tiles(self, dim)) return by_parts(self, dim);
  Dims sizes = self.sizes().dims();
  sizes[static_cast<size_t>(dim)] /= 2;
  const Tensor result = empty_tensor(sizes, self.dtype());
  const Halves halves(self, dim);
  const Elements e(self.dtype());
  halves.for_tiles([&](int64_t to, int64_t from, int64_t n) {
    Tile first, gate, out;
    const char* b = e.read(e.at(self, from + halves.run), n, gate.bytes);
    e.compute(Formula::Sigmoid, gate.bytes, b, nullptr, n);
    char* const at = e.at(result, to);
    char* const product = e.room(at, out.bytes);
    e.compute(Formula::Mul, product, e.read(e.at(self, from), n, first.bytes), gate.bytes, n);
    e.write(at, product, n);
  });
  return result;
}

Tensor gated_gradient(const Tensor& g, const Tensor& self, int64_t dim) {
  const bool again = derivatives_wanted() || dispatch_state.level;
  if (again || !in_tiles(self, dim) || !ops::is_plain(g) || g.dtype() != self.dtype())
    return gradient_by_parts(g, self, dim);
  const Tensor grads = ops::contiguous(g);
  const Tensor result = empty_tensor(self.sizes(), self.dtype());
  const Halves halves(self, dim);
  const Elements e(self.dtype());
  halves.for_tiles([&](int64_t from, int64_t to, int64_t n) {
    Tile first, grad, gate, out, rest;
    const char* b = e.read(e.at(self, to + halves.run), n, gate.bytes);
    e.compute(Formula::Sigmoid, gate.bytes, b, nullptr, n);
    const char* gs = e.read(e.at(grads, from), n, grad.bytes);
    char *const at = e.at(result, to), *const beside = e.at(result, to + halves.run);
    char* const left = e.room(at, out.bytes);
    e.compute(Formula::Mul, left, gs, gate.bytes, n);
    e.write(at, left, n);
    e.compute(Formula::Mul, rest.bytes, gs, e.read(e.at(self, to), n, first.bytes), n);
    char* const right = e.room(beside, out.bytes);
    e.compute(Formula::SigmoidBackward, right, rest.bytes, gate.bytes, n);
    e.write(beside, right, n);
  });
  return result;
}

// In one pass over memory where nobody but autograd takes note of the parts.
Tensor glu_body(const Call&, const Tensor& self, int64_t dim) {
  RL_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t d = wrap_dim(dim, self.dim()), n = self.size(d);
  RL_CHECK(n % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", n);
  const uint32_t noted =
      dispatch_state.always | (detail::flags_of(self) & dispatch_state.consider & ~uint32_t{kAutograd});
  const bool whole = !(noted & kDispatchBits) && !dispatch_state.level && self.is_cpu() &&
                     is_floating(self.dtype()) && self.is_contiguous() && Halves(self, d).pays();
  return whole ? ops::gated(self, d) : by_parts(self, d);
}

}  // namespace

void register_gated_operators(Table& t) {
  t.op(ops::gated, "_gated(Tensor self, int dim) -> Tensor", gated_kernel)
      .absent_in_pytorch()
      .internal()
      .family(Family::Join)
      .batching(Batching::Dims)
      .doc("First half times sigmoid of the second, in one pass over memory.")
      .derivative([](Grad g, In<0> x, Attr<1, int64_t> dim) { return gated_gradient(g, x, *dim); });
  t.composite(ops::glu, "glu(Tensor self, int dim=-1) -> Tensor", glu_body)
      .internal()
      .doc("First half times sigmoid of the second.")
      .one_node();
}

}  // namespace rushlight

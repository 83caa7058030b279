// Operators on positions counted in row-major order: take and put.
#include "cpu/index.h"
#include "cpu/moves.h"
#include "ops/copy.h"
#include "ops/device_positions.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/unordered.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {

Tensor flat_positions(const Tensor& self, const Tensor& index, const char* who) {
  RL_CHECK(index.dtype() == DType::Int64, who, "(): Expected a long tensor for index, but got ",
           legacy_name(index.dtype()));
  const int64_t n = self.numel();
  require_data_beside(self, index, who);
  const Tensor given = dense(index);
  if (given.device().is_meta()) return given;
  RL_CHECK_INDEX(n > 0 || index.numel() == 0, who, "(): tried to take from an empty tensor");
  const int64_t* p = given.data<int64_t>();
  const int64_t count = given.numel();
  if (cpu::all_within(p, count, n)) return given;
  for (int64_t i = 0; i < count; ++i)
    RL_CHECK_INDEX(p[i] >= -n && p[i] < n, "out of range: tried to access index ", p[i], " on a tensor of ",
                   n, " elements.");
  const Tensor positions = contiguous_copy(given);
  int64_t* at = positions.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) at[i] += at[i] < 0 ? n : 0;
  return positions;
}

// The same for loops of devices, on a vector.
loops::IndexedPositions device_positions(const Tensor& line, const Tensor& index, const char* who) {
  RL_CHECK(index.dtype() == DType::Int64, who, "(): Expected a long tensor for index, but got ",
           legacy_name(index.dtype()));
  RL_CHECK_INDEX(line.numel() > 0 || index.numel() == 0, who, "(): tried to take from an empty tensor");
  return loops::indexed_slices(line, 0, reshape(index, {-1}), true);
}

Tensor take_kernel(const Call&, const Tensor& self, const Tensor& index) {
  if (self.device().is_cuda()) {
    const Tensor out = empty_tensor(index.sizes(), self.dtype(), self.device()), line = reshape(self, {-1});
    const loops::IndexedPositions at = device_positions(line, index, "take");
    if (out.numel()) loops::take(reshape(out, {-1}), line, at);
    return out;
  }
  const Tensor positions = flat_positions(self, index, "take"), source = dense(self);
  const Tensor out = empty_tensor(index.sizes(), self.dtype(), self.device());
  if (out.is_cpu() && out.numel())
    cpu::take(source.data_ptr(), positions.data<int64_t>(), out.numel(), self.itemsize(), out.data_ptr());
  return out;
}

Tensor put_kernel(const Call& call, const Tensor& self, const Tensor& index, const Tensor& source,
                  bool accumulate) {
  RL_CHECK(self.dtype() == source.dtype(),
           "put_(): self and source expected to have the same dtype, but got self.dtype = ",
           legacy_name(self.dtype()), " and source.dtype = ", legacy_name(source.dtype()));
  RL_CHECK_INDEX(
      index.numel() == source.numel(),
      "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
      source.numel(), ", index.numel() = ", index.numel());
  check_written_alone(call, {index, source});
  if (!accumulate) check_ordered("put_");
  if (self.device().is_cuda()) {
    const Tensor result = contiguous_copy(self), line = reshape(result, {-1});
    const loops::IndexedPositions at = device_positions(line, index, "put_");
    if (index.numel())
      loops::put(accumulate ? cpu::ScatterOp::Add : cpu::ScatterOp::Assign, line, at, reshape(source, {-1}));
    return result;
  }
  cpu::IndexBlocks blocks;
  const Tensor positions = flat_positions(self, index, "put_"), values = dense(source);
  const bool there = call.out && call.out[0].is_contiguous();
  const Tensor result = there ? working_copy(call, self) : contiguous_copy(self);
  if (!result.is_cpu()) return result;
  blocks.before = blocks.after = {0};
  blocks.indexed.assign(positions.data<int64_t>(), positions.data<int64_t>() + positions.numel());
  if (accumulate)
    cpu::index_accumulate(blocks, result.data_ptr(), values.data_ptr(), false, self.dtype());
  else
    cpu::index_write(blocks, result.data_ptr(), values.data_ptr(), false, self.itemsize());
  return result;
}

}  // namespace

void register_flat_position_operators(Table& t) {
  t.op(take, "take(Tensor self, Tensor index) -> Tensor", take_kernel)
      .doc("Elements at positions counted in row-major order.")
      .family(Family::Index)
      .on_devices()
      .out(OutRule::Disjoint)
      .linear()
      .derivative([](Grad g, Shape<0> x, In<1> at) { return into_zeros(put, x.sizes(), g, at, g, true); });
  t.op(put, "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put_kernel)
      .doc("Writes elements at positions counted in row-major order.")
      .family(Family::Index)
      .on_devices()
      .inplace()
      .linear()
      .derivative([](Grad g, In<1> at, Shape<2> source, Attr<3, bool> accumulate, Needs need) {
        return Grads{*accumulate ? Tensor(g) : put(g, at, zeros_of(source.sizes(), g), false), Tensor(),
                     need[2] ? reshape(take(g, at), source.sizes()) : Tensor()};
      });
}

}  // namespace rushlight

// The position of the largest or smallest element along a dimension.
#include "cuda/reduce_common.h"
#include "cuda/reduce_lines.h"

namespace rushlight::cuda {
namespace {

template <class A>
struct Found {
  A value;
  int64_t position;
};

// NaN first, then the first of equals.
struct Foremost {
  bool largest;
  template <class A>
  RL_BOTH Found<A> operator()(const Found<A>& a, const Found<A>& b) const {
    if (a.position < 0 || b.position < 0) return a.position < 0 ? b : a;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
    const bool equal = a.value == b.value || is_nan(a.value);
    if (equal) return a.position < b.position ? a : b;
    return (a.value > b.value) == largest ? a : b;
  }
};

// --- lines of memory

template <class S, class A>
struct ExtremeStep {
  const S* in;
  bool largest;
  template <int W>
  RL_BOTH Pack<S, W> load(int64_t offset, int64_t) const {
    return *reinterpret_cast<const Pack<S, W>*>(in + offset);
  }
  RL_BOTH char context(int64_t, int64_t) const { return 0; }
  template <int W>  // positions ascend
  RL_BOTH void fold(Found<A>& best, const Pack<S, W>& x, int k, char, int64_t position) const {
    const A value = number<A>(x.v[k]);
    const bool beats = (largest ? !(value <= best.value) : !(value >= best.value)) && !is_nan(best.value);
    if (beats || best.position < 0) best = {value, position};
  }
};

template <class A>
struct LineExtreme {
  using Acc = Found<A>;
  using T = Found<A>;
  using Join = Foremost;
  static constexpr int kResident = 2;
  const char* in;
  char* values;
  int64_t* positions;
  DType dtype;
  Join join;

  template <class G>
  RL_BOTH void visit(G&& g) const {
    visit_loops<A>(dtype, [&](auto tag) {
      using S = typename decltype(tag)::type;
      g(ExtremeStep<S, A>{reinterpret_cast<const S*>(in), join.largest});
    });
  }
  RL_BOTH Found<A> begin() const { return {A(0), -1}; }
  RL_BOTH Found<A> total(const Found<A>& acc) const { return acc; }
  RL_BOTH void finish(int64_t output, const Found<A>& best) const {
    store(dtype, values + output * stored_size(dtype), best.value);
    positions[output] = best.position;
  }
};

template <class A>
bool extreme_of_lines(const View& in, int64_t dim, bool largest, const View& values, const View& indices) {
  Lines lines;
  if (in.rank == 0 || !has_loops<A>(in.dtype) || !find_lines(in, uint64_t{1} << dim, values.numel, &lines))
    return false;
  reduce_lines(
      Launch{in.device, "arg_extreme"}, lines,
      LineExtreme<A>{in.data, values.data, reinterpret_cast<int64_t*>(indices.data), in.dtype, {largest}});
  return true;
}

// --- any layout

template <class A>
struct ArgExtreme {
  LongGeometry<1> lines;
  int64_t count, step;
  const char* in;
  char* values;
  int64_t* positions;
  DType dtype;
  Foremost order;

  RL_BOTH void operator()(const Block& block) const {
    int64_t at;
    lines.locate(block.index, &at);
    Found<A> best{A(0), -1};
    for (int64_t i = block.thread; i < count; i += block.threads)
      best = order(best, Found<A>{load<A>(dtype, in + at + i * step), i});
    best = block_reduce(block, best, order);
    if (block.thread != 0) return;
    store(dtype, values + block.index * stored_size(dtype), best.value);
    positions[block.index] = best.position;
  }
};

template <class A>
void arg_extreme_as(const View& in, int64_t dim, bool largest, const View& values, const View& indices) {
  const bool whole = in.rank == 0;
  const int64_t count = whole ? 1 : in.sizes[dim];
  const int64_t step = whole ? 0 : in.strides[dim];
  const ArgExtreme<A> kernel{lines_of(in, dim), count,       step,
                             in.data,           values.data, reinterpret_cast<int64_t*>(indices.data),
                             in.dtype,          {largest}};
  const Launch launch{in.device, "arg_extreme"};
  const int64_t lines = values.numel;
  if (lines >= 4096 && count <= 64) return for_each_index(launch, lines, AloneInBlock<ArgExtreme<A>>{kernel});
  for_each_block(launch, lines, kernel);
}

}  // namespace

void run_arg_extreme(const View& in, int64_t dim, bool largest, const View& values, const View& indices) {
  if (is_integral_or_bool(in.dtype)) {
    if (!extreme_of_lines<int64_t>(in, dim, largest, values, indices))
      arg_extreme_as<int64_t>(in, dim, largest, values, indices);
  } else if (has_loops<float>(in.dtype)) {
    if (!extreme_of_lines<float>(in, dim, largest, values, indices))
      arg_extreme_as<double>(in, dim, largest, values, indices);
  } else if (!extreme_of_lines<double>(in, dim, largest, values, indices)) {
    arg_extreme_as<double>(in, dim, largest, values, indices);
  }
}

}  // namespace rushlight::cuda

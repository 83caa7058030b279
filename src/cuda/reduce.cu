// Reductions: sums, products, extremes, logic, norms. Sums of float accumulate in float where lines of memory
// are read in order (cuda/reduce_lines.h). Other layouts and dtypes are read as int64 or double; products of
// complex numbers as pairs of double.
#include "cuda/multi_tensor.h"
#include "cuda/reduce_common.h"
#include "cuda/reduce_lines.h"

namespace rushlight::cuda {
namespace {

struct Largest {  // NaN wins
  template <class A>
  RL_BOTH A operator()(A a, A b) const {
    return is_nan(a) || (!is_nan(b) && a >= b) ? a : b;
  }
};
struct Smallest {
  template <class A>
  RL_BOTH A operator()(A a, A b) const {
    return is_nan(a) || (!is_nan(b) && a <= b) ? a : b;
  }
};

// A formula: where it starts, what an element adds, how parts combine, what becomes of the whole. c: the
// centre.
#define RL_REDUCTION(name, combine, start_value, element, result)       \
  struct name {                                                         \
    using Combine = combine;                                            \
    template <class A>                                                  \
    RL_BOTH static A start() {                                          \
      return start_value;                                               \
    }                                                                   \
    template <class A>                                                  \
    RL_BOTH static A step([[maybe_unused]] A x, [[maybe_unused]] A c) { \
      return element;                                                   \
    }                                                                   \
    template <class A>                                                  \
    RL_BOTH static A finish(A t, [[maybe_unused]] double divisor) {     \
      return result;                                                    \
    }                                                                   \
  };
RL_REDUCTION(Sum, Added, A(0), x, divisor == 1 ? t : static_cast<A>(static_cast<double>(t) / divisor))
RL_REDUCTION(NanSum, Added, A(0), is_nan(x) ? A(0) : x,
             divisor == 1 ? t : static_cast<A>(static_cast<double>(t) / divisor))
RL_REDUCTION(Prod, Multiplied, A(1), x, t)
RL_REDUCTION(Max, Largest, lowest<A>(), x, t)
RL_REDUCTION(Min, Smallest, highest<A>(), x, t)
RL_REDUCTION(All, Smallest, A(1), A(x != A(0)), t)
RL_REDUCTION(Any, Largest, A(0), A(x != A(0)), t)
RL_REDUCTION(Norm0, Added, A(0), A(x != A(0)), t)
RL_REDUCTION(Norm1, Added, A(0), magnitude(x), t)
RL_REDUCTION(Norm2, Added, A(0), x* x, static_cast<A>(sqrt(static_cast<double>(t))))
RL_REDUCTION(MaxAbs, Largest, A(0), magnitude(x), t)
RL_REDUCTION(MinAbs, Smallest, highest<A>(), magnitude(x), t)
RL_REDUCTION(Deviation, Added, A(0), (x - c) * (x - c), static_cast<A>(static_cast<double>(t) / divisor))
#undef RL_REDUCTION

// --- lines of memory

template <class F, class S, class A>
struct LineStep {
  const S* in;
  template <int W>
  RL_BOTH Pack<S, W> load(int64_t offset, int64_t) const {
    return *reinterpret_cast<const Pack<S, W>*>(in + offset);
  }
  RL_BOTH char context(int64_t, int64_t) const { return 0; }
  template <int W>
  RL_BOTH void fold(A& acc, const Pack<S, W>& x, int k, char, int64_t) const {
    acc = typename F::Combine{}(acc, F::template step<A>(number<A>(x.v[k]), A(0)));
  }
};

template <class F, class A>
struct LineReduction {
  using Acc = A;
  using T = A;
  using Join = typename F::Combine;
  static constexpr int kResident = sizeof(A) == 4 ? 3 : 2;
  const char* in;
  char* out;
  DType in_dtype, out_dtype;
  double divisor;
  Join join;

  template <class G>
  RL_BOTH void visit(G&& g) const {
    visit_loops<A>(in_dtype, [&](auto tag) {
      using S = typename decltype(tag)::type;
      g(LineStep<F, S, A>{reinterpret_cast<const S*>(in)});
    });
  }
  RL_BOTH A begin() const { return F::template start<A>(); }
  RL_BOTH A total(A acc) const { return acc; }
  RL_BOTH void finish(int64_t output, A t) const {
    store(out_dtype, out + output * stored_size(out_dtype), F::template finish<A>(t, divisor));
  }
};

// --- any layout

// One block an output, or a part of one. Parts are kept as they are, to be combined by a second pass.
template <class F, class A>
struct Reduce {
  LongGeometry<2> kept;  // input and output
  LongGeometry<1> reduced;
  int64_t count = 1, parts = 1;  // elements of an output; blocks that share it
  const char *in = nullptr, *centre = nullptr;
  char* out = nullptr;
  DType in_dtype, out_dtype;
  double divisor = 1;
  bool first = true, last = true;  // passes

  RL_BOTH void operator()(const Block& block) const {
    const int64_t output = block.index / parts, part = block.index % parts;
    int64_t at[2];
    kept.locate(output, at);
    const A c = centre ? read<A>(in_dtype, centre + output * stored_size(in_dtype)) : A(0);
    const int64_t length = (count + parts - 1) / parts, begin = part * length;
    const int64_t end = begin + length < count ? begin + length : count;
    typename F::Combine combine;
    A total = F::template start<A>();
    for (int64_t i = begin + block.thread; i < end; i += block.threads) {
      int64_t offset;
      reduced.locate(i, &offset);
      const A x = read<A>(in_dtype, in + at[0] + offset);
      total = combine(total, first ? F::template step<A>(x, c) : x);
    }
    total = block_reduce(block, total, combine);
    if (block.thread != 0) return;
    write(out_dtype, out + at[1] + (last ? 0 : part * static_cast<int64_t>(sizeof(A))),
          last ? F::template finish<A>(total, divisor) : total);
  }
};

// The dimensions of `in` by whether their bit is set: `kept` with the strides of a contiguous output,
// innermost first.
template <class F, class A>
void lay_out(Reduce<F, A>& r, const View& in, uint64_t dims, int64_t out_step) {
  for (int d = in.rank - 1; d >= 0; --d) {
    const int64_t size = in.sizes[d], stride = in.strides[d];
    if (size == 1) continue;
    if (dims >> d & 1) {
      r.count *= size;
      if (const int k = r.reduced.rank;
          k > 0 && r.reduced.strides[k - 1][0] * r.reduced.sizes[k - 1] == stride) {
        r.reduced.sizes[k - 1] *= size;
        continue;
      }
      r.reduced.sizes[r.reduced.rank] = size;
      r.reduced.strides[r.reduced.rank++][0] = stride;
    } else {
      r.kept.sizes[r.kept.rank] = size;
      r.kept.strides[r.kept.rank][0] = stride;
      r.kept.strides[r.kept.rank++][1] = out_step;
      out_step *= size;
    }
  }
}

template <class F, class A>
void run(const Launch& launch, const Reduce<F, A>& r, int64_t outputs) {
  const int64_t item = static_cast<int64_t>(element_size(r.in_dtype));
  const bool adjacent = r.kept.rank > 0 && r.kept.strides[0][0] == item;
  // Neighbouring threads read neighbouring elements: across outputs, or along one.
  if (outputs >= 4096 && (r.count <= 64 || adjacent) && r.parts == 1)
    return for_each_index(launch, outputs, AloneInBlock<Reduce<F, A>>{r});
  for_each_block(launch, outputs * r.parts, r);
}

template <class F, class A>
void reduce_as(const View& in, uint64_t dims, const View& out, const ReduceOptions& params) {
  const int device = out.device;
  Reduce<F, A> r;
  r.in_dtype = in.dtype, r.out_dtype = out.dtype;
  r.in = in.data, r.out = out.data;
  r.divisor = params.divisor, r.centre = static_cast<const char*>(params.centre);
  const int64_t outputs = out.numel;
  const Launch launch{device, "reduce"};
  lay_out(r, in, dims, static_cast<int64_t>(element_size(out.dtype)));
  constexpr int64_t kFew = 512, kLong = 16384, kPart = 4096, kMostParts = 1024;
  if (outputs >= kFew || r.count < kLong) return run(launch, r, outputs);
  // Few long ones: in parts, which a second pass combines.
  const int64_t parts = std::min(kMostParts, r.count / kPart);
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const auto bytes = static_cast<size_t>(outputs * parts) * sizeof(A);
  auto* partial = static_cast<char*>(backend.allocate(bytes, device));
  Reduce<F, A> split = r, rest;
  split.parts = parts, split.last = false, split.out = partial, split.out_dtype = kept_in<A>();
  const double widen = static_cast<double>(parts) * sizeof(A) / static_cast<double>(element_size(out.dtype));
  for (int d = 0; d < split.kept.rank; ++d)
    split.kept.strides[d][1] = static_cast<int64_t>(static_cast<double>(split.kept.strides[d][1]) * widen);
  run(launch, split, outputs);
  rest.in = partial, rest.in_dtype = kept_in<A>(), rest.out = r.out, rest.out_dtype = r.out_dtype;
  rest.divisor = r.divisor, rest.first = false, rest.count = parts;
  rest.reduced.rank = 1, rest.reduced.sizes[0] = parts, rest.reduced.strides[0][0] = sizeof(A);
  rest.kept.rank = 1, rest.kept.sizes[0] = outputs;
  rest.kept.strides[0][0] = parts * static_cast<int64_t>(sizeof(A));
  rest.kept.strides[0][1] = static_cast<int64_t>(element_size(out.dtype));
  run(launch, rest, outputs);
  backend.deallocate(partial, bytes, device);
}

// What has loops for lines of memory in A; each costs compile time, and the rest is rare.
template <class F, class... Fs>
constexpr bool is_one_of = (std::is_same_v<F, Fs> || ...);
template <class F, class A>
constexpr bool has_lines =
    std::is_same_v<A, float>    ? is_one_of<F, Sum, NanSum, Prod, Max, Min, Norm1, Norm2, MaxAbs>
    : std::is_same_v<A, double> ? is_one_of<F, Sum, Prod, Max, Min, Norm2>
                                : is_one_of<F, Sum, Prod, Max, Min, All, Any>;

template <class F, class A>
void reduce_in(const View& in, uint64_t dims, const View& out, const ReduceOptions& params) {
  if constexpr (has_lines<F, A>) {
    Lines lines;
    if (has_loops<A>(in.dtype) && find_lines(in, dims, out.numel, &lines))
      return reduce_lines(Launch{out.device, "reduce"}, lines,
                          LineReduction<F, A>{in.data, out.data, in.dtype, out.dtype, params.divisor, {}});
  }
  reduce_as<F, std::conditional_t<std::is_same_v<A, float>, double, A>>(in, dims, out, params);
}

template <class F>
void reduce_any(const View& in, uint64_t dims, const View& out, const ReduceOptions& params) {
  if (is_integral_or_bool(in.dtype)) return reduce_in<F, int64_t>(in, dims, out, params);
  if (has_loops<float>(in.dtype) && out.dtype != DType::Float64)
    return reduce_in<F, float>(in, dims, out, params);
  reduce_in<F, double>(in, dims, out, params);
}

// --- whole tensors, many in one launch

// First a block reduces a piece of a tensor, then a block combines the pieces of one.
template <class F, class A>
struct ReduceMany {
  static constexpr int kMost = 128;
  static constexpr int64_t kPiece = 16384;
  TensorBlocks<kMost> tensor_blocks;
  WholeReduction tensors[kMost];
  DType in_dtype, out_dtype;
  double divisor = 1;
  A* pieces = nullptr;  // of all tensors, in the order of their blocks
  bool first = true;

  RL_BOTH void operator()(const Block& block) const {
    const int k = first ? tensor_blocks.owner(block.index) : static_cast<int>(block.index);
    const int64_t from = tensor_blocks.first_block[k], to = tensor_blocks.first_block[k + 1];
    const WholeReduction& t = tensors[k];
    typename F::Combine combine;
    A total = F::template start<A>();
    if (first) {
      const int64_t begin = (block.index - from) * kPiece, item = stored_size(in_dtype);
      const int64_t end = begin + kPiece < t.numel ? begin + kPiece : t.numel;
      for (int64_t i = begin + block.thread; i < end; i += block.threads)
        total = combine(
            total, F::template step<A>(load<A>(in_dtype, static_cast<const char*>(t.in) + i * item), A(0)));
    } else {
      for (int64_t i = from + block.thread; i < to; i += block.threads) total = combine(total, pieces[i]);
    }
    total = block_reduce(block, total, combine);
    if (block.thread != 0) return;
    if (first)
      pieces[block.index] = total;
    else
      store(out_dtype, t.out, F::template finish<A>(total, divisor));
  }
};

template <class F, class A>
void reduce_many(int device, DType in, DType out, std::span<const WholeReduction> tensors, double divisor) {
  using Kernel = ReduceMany<F, A>;
  static_assert(sizeof(Kernel) <= 4096);
  const Launch launch{device, "reduce"};
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  for (size_t start = 0; start < tensors.size(); start += Kernel::kMost) {
    Kernel kernel;
    kernel.in_dtype = in, kernel.out_dtype = out, kernel.divisor = divisor;
    for (const WholeReduction& t :
         tensors.subspan(start, std::min<size_t>(Kernel::kMost, tensors.size() - start))) {
      kernel.tensors[kernel.tensor_blocks.count] = t;
      kernel.tensor_blocks.add((t.numel + Kernel::kPiece - 1) / Kernel::kPiece);
    }
    const size_t bytes = static_cast<size_t>(std::max(kernel.tensor_blocks.blocks(), 1)) * sizeof(A);
    kernel.pieces = static_cast<A*>(backend.allocate(bytes, device));
    for_each_block(launch, kernel.tensor_blocks.blocks(), kernel);
    kernel.first = false;
    for_each_block(launch, kernel.tensor_blocks.count, kernel);
    backend.deallocate(kernel.pieces, bytes, device);
  }
}

}  // namespace

void run_reduce(Reduction op, const View& in, uint64_t dims, const View& out, const ReduceOptions& params) {
  switch (op) {
#define RL_CASE(name)   \
  case Reduction::name: \
    return reduce_any<name>(in, dims, out, params);
    RL_REDUCTIONS(RL_CASE)
#undef RL_CASE
  }
}

void run_complex_product(const View& in, uint64_t dims, const View& out) {
  reduce_as<Prod, Complex>(in, dims, out, {});
}

void run_reductions(Reduction op, int device, DType in, DType out, std::span<const WholeReduction> tensors,
                    double divisor) {
  const bool whole = is_integral_or_bool(in);
  switch (op) {
#define RL_CASE(name)                                                            \
  case Reduction::name:                                                          \
    return whole ? reduce_many<name, int64_t>(device, in, out, tensors, divisor) \
                 : reduce_many<name, double>(device, in, out, tensors, divisor);
    RL_REDUCTIONS(RL_CASE)
#undef RL_CASE
  }
}

}  // namespace rushlight::cuda

#include "ops/factory.h"

#include <cmath>
#include <limits>

#include "core/device_math.h"
#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/factory.h"
#include "dispatch/table.h"
#include "ops/device_positions.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/uninitialized.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using OptLayout = std::optional<Layout>;
using OptFormat = std::optional<MemoryFormat>;
using OptBool = std::optional<bool>;
constexpr const char* kConstant = "made from numbers, not from tensors";

void check_options(const Call& call, OptLayout layout, OptBool pin_memory) {
  if (layout.value_or(Layout::Strided) != Layout::Strided)
    RL_NOT_IMPLEMENTED(call.op.name(), "(): only layout=torch.strided is supported");
  RL_CHECK(!pin_memory.value_or(false), call.op.name(),
           "(): Cannot access accelerator device when none is available.");
}

#ifdef RUSHLIGHT_INFERENCE  // the small runtime knows no sparse tensors
constexpr bool is_sparse_layout(OptLayout) { return false; }
#else
bool is_sparse_layout(OptLayout layout) { return layout.value_or(Layout::Strided) != Layout::Strided; }
#endif

// The dtype asked for, which out= must have too, else out's, else nothing.
OptDType requested(const Call& call, OptDType dtype) {
  RL_CHECK(!dtype || !call.out || *dtype == call.out->dtype(), "dtype ", legacy_name(*dtype),
           " does not match dtype of out parameter (", legacy_name(call.out->dtype()), ")");
  return dtype ? dtype : call.out ? OptDType(call.out->dtype()) : std::nullopt;
}

DType chosen(const Call& call, OptDType dtype) {
  return requested(call, dtype).value_or(get_default_dtype());
}

// Integers alone give int64, as Python's numbers do.
DType inferred(const Call& call, OptDType dtype, std::initializer_list<Scalar> numbers) {
  if (OptDType asked = requested(call, dtype)) return *asked;
  Promotion promotion;
  for (const Scalar& s : numbers) promotion.add(s);
  const DType type = promotion.result();
  return is_bool(type) ? DType::Int64 : type;
}

Tensor filled(Tensor t, const Scalar& value) {
  if (t.device().is_meta() || t.numel() == 0) return t;
  if (t.is_cpu() && value == Scalar(0) && !value.is_floating())
    cpu::clear(t.data_ptr(), t.nbytes());
  else
    loops::copy(t, scalar_tensor_of(value, t.dtype()));
  return t;
}

}  // namespace

void fill_uninitialized(const Tensor& t) {
  const DType type = t.dtype();
  if (is_floating(type) || is_complex(type)) {
    filled(t, Scalar(std::numeric_limits<double>::quiet_NaN()));
  } else {
    visit_dtype(Concat<TypeList<bool>, IntegralTypes>{}, type, "empty",
                [&]<class T>(T) { filled(t, Scalar(static_cast<uint64_t>(std::numeric_limits<T>::max()))); });
  }
}

bool fills_uninitialized() {
  return device_math().deterministic_algorithms && device_math().fill_uninitialized;
}

namespace {

// What nothing has been written to yet; equal from run to run in deterministic mode.
Tensor uninitialized(Tensor t) {
  RL_CHECK(
      !is_quantized(t.dtype()), "torch.", dtype_name(t.dtype()),
      ": a quantized tensor needs a scale; use torch._empty_affine_quantized or torch.quantize_per_tensor");
  if (fills_uninitialized()) [[unlikely]]
    fill_uninitialized(t);
  return t;
}

// --- constant fills

Tensor empty_kernel(const Call& call, IntList size, OptDType dtype, OptLayout layout, OptDevice device,
                    OptBool pin, OptFormat format) {
  if (is_sparse_layout(layout)) return without_elements(size, chosen(call, dtype), *layout);
  check_options(call, layout, pin);
  RL_CHECK(format != MemoryFormat::Preserve,
           "empty(): memory_format=torch.preserve_format needs a tensor to follow");
  return uninitialized(empty_tensor(size, chosen(call, dtype), device.value_or(Device{}),
                                    format.value_or(MemoryFormat::Contiguous)));
}
Tensor empty_strided_kernel(const Call& call, IntList size, IntList stride, OptDType dtype, OptLayout layout,
                            OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  return uninitialized(empty_strided_tensor(size, stride, chosen(call, dtype), device.value_or(Device{})));
}
// `order` lists the dimensions from the slowest to the fastest in memory.
Tensor empty_permuted_kernel(const Call& call, IntList size, IntList order, OptDType dtype, OptLayout layout,
                             OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  RL_CHECK(size.size() == order.size(),
           "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ",
           size.size(), " is not equal to len(physical_layout) = ", order.size());
  checked_numel(size);
  Dims strides(size.size()), seen(size.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t d = order[i];
    RL_CHECK(d >= 0 && d < static_cast<int64_t>(size.size()),
             "Dimension out of range (expected to be between 0 and ", static_cast<int64_t>(size.size()) - 1,
             ", but got ", d, " at index ", i,
             ").  NB: negative dims not currently supported; file an issue if you want it.");
    RL_CHECK(!seen[d], "Duplicate dim not allowed");
    seen[d] = 1;
    strides[d] = step;
    step *= std::max<int64_t>(size[d], 1);
  }
  return uninitialized(empty_strided_tensor(size, strides, chosen(call, dtype), device.value_or(Device{})));
}

template <int Value>
Tensor constant_kernel(const Call& call, IntList size, OptDType dtype, OptLayout layout, OptDevice device,
                       OptBool pin) {
  if (Value == 0 && is_sparse_layout(layout)) return without_elements(size, chosen(call, dtype), *layout);
  check_options(call, layout, pin);
  return filled(empty_tensor(size, chosen(call, dtype), device.value_or(Device{})), Value);
}
Tensor full_kernel(const Call& call, IntList size, const Scalar& value, OptDType dtype, OptLayout layout,
                   OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  const DType type = requested(call, dtype).value_or(value.dtype());
  value.check_fits(type);
  return filled(empty_tensor(size, type, device.value_or(Device{})), value);
}
Tensor scalar_tensor_kernel(const Call& call, const Scalar& s, OptDType dtype, OptLayout layout,
                            OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  return scalar_tensor_of(s, chosen(call, dtype), device.value_or(Device{}));
}

Tensor empty_like_kernel(const Call& call, const Tensor& self, OptDType dtype, OptLayout layout,
                         OptDevice device, OptBool pin, OptFormat format) {
  check_options(call, layout, pin);
  const DType type = dtype.value_or(self.dtype());
  const Device target = device.value_or(self.device());
  if (format.value_or(MemoryFormat::Preserve) != MemoryFormat::Preserve)
    return uninitialized(empty_tensor(self.sizes(), type, target, *format));
  if (target == self.device()) return uninitialized(empty_like_tensor(self, type));
  const Tensor layout_of = empty_like_tensor(self, type);
  return uninitialized(empty_strided_tensor(self.sizes(), layout_of.strides(), type, target));
}
template <int Value>
Tensor constant_like_kernel(const Call& call, const Tensor& self, OptDType dtype, OptLayout layout,
                            OptDevice device, OptBool pin, OptFormat format) {
  if (Value == 0 && is_sparse_layout(layout))
    return without_elements(self.sizes(), dtype.value_or(self.dtype()), *layout);
  return filled(empty_like_kernel(call, self, dtype, layout, device, pin, format), Value);
}
Tensor full_like_kernel(const Call& call, const Tensor& self, const Scalar& value, OptDType dtype,
                        OptLayout layout, OptDevice device, OptBool pin, OptFormat format) {
  value.check_fits(dtype.value_or(self.dtype()));
  return filled(empty_like_kernel(call, self, dtype, layout, device, pin, format), value);
}

Tensor new_empty_kernel(const Call& call, const Tensor& self, IntList size, OptDType dtype, OptLayout layout,
                        OptDevice device, OptBool pin) {
  if (is_sparse_layout(layout)) return without_elements(size, dtype.value_or(self.dtype()), *layout);
  check_options(call, layout, pin);
  return uninitialized(empty_tensor(size, dtype.value_or(self.dtype()), device.value_or(self.device())));
}
template <int Value>
Tensor new_constant_kernel(const Call& call, const Tensor& self, IntList size, OptDType dtype,
                           OptLayout layout, OptDevice device, OptBool pin) {
  if (Value != 0) check_options(call, layout, pin);
  if (is_sparse_layout(layout)) return new_empty_kernel(call, self, size, dtype, layout, device, pin);
  return filled(new_empty_kernel(call, self, size, dtype, layout, device, pin), Value);
}
Tensor new_full_kernel(const Call& call, const Tensor& self, IntList size, const Scalar& value,
                       OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  value.check_fits(dtype.value_or(self.dtype()));
  return filled(new_empty_kernel(call, self, size, dtype, layout, device, pin), value);
}
Tensor new_empty_strided_kernel(const Call& call, const Tensor& self, IntList size, IntList stride,
                                OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  return uninitialized(
      empty_strided_tensor(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device())));
}

// --- ranges

void check_range(const Scalar& start, const Scalar& end, const Scalar& step) {
  for (const Scalar* s : {&start, &end, &step})
    RL_CHECK(!s->is_complex(), "arange: complex numbers have no order");
  const double a = start.to_double(), b = end.to_double(), d = step.to_double();
  RL_CHECK(d > 0 || d < 0, "step must be nonzero");
  RL_CHECK(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
  RL_CHECK((d > 0 && b >= a) || (d < 0 && b <= a), "upper bound and lower bound inconsistent with step sign");
}

// How many steps fit; counted in integers where all three are, since double holds only 53 bits.
int64_t range_size(const Scalar& start, const Scalar& end, const Scalar& step, bool integral,
                   bool inclusive) {
  if (integral) {
    const __int128 span = static_cast<__int128>(end.to_int()) - start.to_int(), d = step.to_int();
    RL_CHECK_VALUE(d != 0, "step must be nonzero");
    const __int128 n = inclusive ? span / d + 1 : (span + d - (d > 0 ? 1 : -1)) / d;
    RL_CHECK(n >= 0 && n <= INT64_MAX, "invalid size, possible overflow?");
    return static_cast<int64_t>(n);
  }
  const double steps = (end.to_double() - start.to_double()) / step.to_double();
  const double n = inclusive ? std::floor(steps) + 1 : std::ceil(steps);
  RL_CHECK(n >= 0 && n < 9.2e18, "invalid size, possible overflow?");
  return static_cast<int64_t>(n);
}

// An out tensor of as many elements keeps its shape.
Tensor in_shape_of_out(const Call& call, const Tensor& line) {
  const bool shaped = call.out && call.out->dim() != 1 && call.out->numel() == line.numel();
  return shaped ? ops::view(line, call.out->sizes()) : line;
}

Tensor stepped(const Call& call, const Scalar& start, const Scalar& end, const Scalar& step, DType type,
               OptDevice device, bool inclusive) {
  check_range(start, end, step);
  if (is_bool(type) || is_complex(type))
    RL_NOT_IMPLEMENTED("\"", call.op.name(), "_cpu\" not implemented for '", legacy_name(type), "'");
  const bool integral = !start.is_floating() && !end.is_floating() && !step.is_floating();
  const Tensor out = empty_tensor({range_size(start, end, step, integral || type == DType::Int64, inclusive)},
                                  type, device.value_or(Device{}));
  loops::range(out, start, step);
  return in_shape_of_out(call, out);
}

Tensor arange_kernel(const Call& call, const Scalar& start, const Scalar& end, const Scalar& step,
                     OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  return stepped(call, start, end, step, inferred(call, dtype, {start, end, step}), device, false);
}
Tensor arange_end_body(const Call& call, const Scalar& end, OptDType dtype, OptLayout layout,
                       OptDevice device, OptBool pin) {
  return in_shape_of_out(call,
                         ops::arange(Scalar(0), end, Scalar(1), requested(call, dtype), layout, device, pin));
}
Tensor range_kernel(const Call& call, const Scalar& start, const Scalar& end, const Scalar& step,
                    OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  show_warning(
      "torch.range is deprecated and will be removed in a future release because its behavior is "
      "inconsistent "
      "with Python's range builtin. Instead, use torch.arange, which produces values in [start, end).");
  return stepped(call, start, end, step, chosen(call, dtype), device, true);
}

DType spaced_type(const Call& call, OptDType dtype, const Scalar& start, const Scalar& end) {
  const bool complex = start.is_complex() || end.is_complex();
  const DType fallback = complex ? complex_dtype(get_default_dtype()) : get_default_dtype();
  const DType type = requested(call, dtype).value_or(fallback);
  RL_CHECK(!complex || is_complex(type), "torch.", call.op.name(), "(): inferred dtype ", cpp_name(fallback),
           " can't be safely cast to passed dtype ", legacy_name(type));
  return type;
}

Tensor linspace_kernel(const Call& call, const Scalar& start, const Scalar& end, int64_t steps,
                       OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  RL_CHECK(steps >= 0, "number of steps must be non-negative");
  const Tensor out = empty_tensor({steps}, spaced_type(call, dtype, start, end), device.value_or(Device{}));
  if (out.is_cpu()) cpu::fill_spaced(out, start, end, std::nullopt);
  return in_shape_of_out(call, out);
}
Tensor logspace_kernel(const Call& call, const Scalar& start, const Scalar& end, int64_t steps, double base,
                       OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  RL_CHECK(steps >= 0, "number of steps must be non-negative");
  const Tensor out = empty_tensor({steps}, spaced_type(call, dtype, start, end), device.value_or(Device{}));
  if (steps == 1 && !start.is_complex()) {  // the exponent is not rounded to the dtype first
    const Scalar power = std::pow(base, start.to_double());
    if (out.is_cpu()) cpu::fill_spaced(out, power, power, std::nullopt);
    return out;
  }
  if (out.is_cpu()) cpu::fill_spaced(out, start, end, base);
  return in_shape_of_out(call, out);
}

// The same between numbers that tensors hold.
int64_t dim_of(const Scalar&) { return 0; }
int64_t dim_of(const Tensor& t) { return t.dim(); }
const Scalar& number_in(const Scalar& s) { return s; }
Scalar number_in(const Tensor& t) { return read_scalar(t); }

template <class Start, class End>
void check_numbers(const Call& call, const Start& start, const End& end) {
  RL_CHECK(dim_of(start) == 0 && dim_of(end) == 0, call.op.schema.name,
           " only supports 0-dimensional start and end tensors, but got start with ", dim_of(start),
           " dimension(s) and end with ", dim_of(end), " dimension(s).");
}
template <class Start, class End>
Tensor linspace_of(const Call& call, const Start& start, const End& end, int64_t steps, OptDType dtype,
                   OptLayout layout, OptDevice device, OptBool pin) {
  check_numbers(call, start, end);
  return ops::linspace(number_in(start), number_in(end), steps, dtype, layout, device, pin);
}
template <class Start, class End>
Tensor logspace_of(const Call& call, const Start& start, const End& end, int64_t steps, double base,
                   OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  check_numbers(call, start, end);
  return ops::logspace(number_in(start), number_in(end), steps, base, dtype, layout, device, pin);
}

// --- matrices

Tensor eye_kernel(const Call& call, int64_t n, int64_t m, OptDType dtype, OptLayout layout, OptDevice device,
                  OptBool pin) {
  check_options(call, layout, pin);
  RL_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  RL_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  const Tensor out = filled(empty_tensor({n, m}, chosen(call, dtype), device.value_or(Device{})), 0);
  const int64_t diagonal = std::min(n, m);
  if (!out.device().is_meta() && diagonal)
    loops::copy(make_view(out, {diagonal}, {m + 1}, 0, false), scalar_tensor_of(1, out.dtype()));
  return out;
}
Tensor eye_square_kernel(const Call& call, int64_t n, OptDType dtype, OptLayout layout, OptDevice device,
                         OptBool pin) {
  return eye_kernel(call, n, n, dtype, layout, device, pin);
}

template <bool Upper>
Tensor triangle_kernel(const Call& call, const Tensor& self, int64_t diagonal) {
  RL_CHECK(!call.out || call.out->dtype() == self.dtype(), "Expected out tensor to have dtype ",
           dtype_name(self.dtype()), ", but got ", dtype_name(call.out->dtype()), " instead");
  RL_CHECK(self.dim() >= 2, Upper ? "triu" : "tril", ": input tensor must have at least 2 dimensions");
  const Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (out.device().is_meta()) return out;
  if (out.device().is_cuda() && self.is_contiguous() && out.numel() > 0) {
    loops::moves_on(out).triangle(out, self, diagonal, Upper);
    return out;
  }
  loops::copy(out, self);
  loops::triangle(out, diagonal, Upper);
  return out;
}

// Entries on and below a diagonal. row * col must not overflow.
int64_t entries_below(int64_t row, int64_t col, int64_t offset) {
  const int64_t first = std::clamp<int64_t>(-offset, 0, row);              // the first row with an entry
  const int64_t full = std::clamp<int64_t>(col - offset - 1, first, row);  // the first row with all of them
  const int64_t n = full - first;
  return n * (first + offset + 1) + (n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1)) + (row - full) * col;
}

template <bool Upper>
Tensor triangle_indices_kernel(const Call& call, int64_t row, int64_t col, int64_t offset, OptDType dtype,
                               OptLayout layout, OptDevice device, OptBool pin) {
  check_options(call, layout, pin);
  RL_CHECK(row >= 0, "row must be non-negative, got", row);
  RL_CHECK(col >= 0, "col must be non-negative, got", col);
  const DType type = dtype.value_or(DType::Int64);
  RL_CHECK(type == DType::Int64 || type == DType::Int32, "\"", call.op.name(), "\" not implemented for '",
           legacy_name(type), "'");
  offset = std::clamp(offset, -row, col);  // beyond, nothing changes
  // Columns of row i that belong: [0, i + offset] below, [i + offset, col) above.
  auto first = [&](int64_t i) { return Upper ? std::clamp<int64_t>(i + offset, 0, col) : int64_t{0}; };
  auto last = [&](int64_t i) { return Upper ? col : std::clamp<int64_t>(i + offset + 1, 0, col); };
  const int64_t all = checked_numel(IntList{row, col});
  const int64_t below = entries_below(row, col, Upper ? offset - 1 : offset), n = Upper ? all - below : below;
  const int64_t first_row = Upper ? 0 : std::clamp<int64_t>(-offset, 0, row);
  const int64_t last_row = n == 0 ? first_row : Upper ? std::min(row, col - offset) : row;
  const Tensor out = empty_tensor({2, n}, type, device.value_or(Device{}));
  if (!out.is_cpu()) return out;
  visit_dtype(TypeList<int32_t, int64_t>{}, type, call.op.name(), [&](auto tag) {
    auto* rows = out.data<decltype(tag)>();
    auto* columns = rows + n;
    for (int64_t i = first_row; i < last_row; ++i)
      for (int64_t j = first(i); j < last(i); ++j)
        *rows++ = static_cast<decltype(tag)>(i), *columns++ = static_cast<decltype(tag)>(j);
  });
  return out;
}

#define RL_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

void register_fills(Table& t) {
  auto factory = [](OpBuilder r, const char* doc) {
    return r.family(Family::Factory).on_devices().not_differentiable(kConstant).doc(doc);
  };
  factory(
      t.op(ops::empty,
           "empty.memory_format(int[1] size, *, " RL_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
           empty_kernel)
          .uninitialized()
          .special_dtypes(),
      "Uninitialised memory.")
      .out()
      .out_overload("out");
  factory(t.op(ops::empty_strided, "empty_strided(int[] size, int[] stride, *, " RL_OPTIONS ") -> Tensor",
               empty_strided_kernel)
              .uninitialized()
              .special_dtypes(),
          "Uninitialised memory with given strides.");
  factory(t.op(ops::empty_permuted,
               "empty_permuted(int[] size, int[] physical_layout, *, " RL_OPTIONS ") -> Tensor",
               empty_permuted_kernel)
              .uninitialized()
              .special_dtypes(),
          "Uninitialised dense memory, its dimensions in a given order.");
  factory(t.op(ops::zeros, "zeros(int[1] size, *, " RL_OPTIONS ") -> Tensor", constant_kernel<0>),
          "All zeros.")
      .out();
  factory(t.op(ops::ones, "ones(int[1] size, *, " RL_OPTIONS ") -> Tensor", constant_kernel<1>), "All ones.")
      .out();
  factory(t.op(ops::full, "full(int[1] size, Scalar fill_value, *, " RL_OPTIONS ") -> Tensor", full_kernel),
          "All equal to fill_value; its type decides the dtype.")
      .out();
  factory(
      t.op(ops::scalar_tensor, "scalar_tensor(Scalar s, *, " RL_OPTIONS ") -> Tensor", scalar_tensor_kernel),
      "A 0-dim tensor.");
  auto like = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    return factory(t.op(handle, schema, kernel), doc).function_only().elementwise();
  };
  like(ops::empty_like,
       "empty_like(Tensor self, *, " RL_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
       empty_like_kernel, "Uninitialised memory of self's shape.")
      .uninitialized()
      .special_dtypes();
  like(ops::zeros_like,
       "zeros_like(Tensor self, *, " RL_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
       constant_like_kernel<0>, "Zeros of self's shape.");
  like(ops::ones_like,
       "ones_like(Tensor self, *, " RL_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
       constant_like_kernel<1>, "Ones of self's shape.");
  like(ops::full_like,
       "full_like(Tensor self, Scalar fill_value, *, " RL_OPTIONS
       ", MemoryFormat? memory_format=None) -> Tensor",
       full_like_kernel, "fill_value in self's shape.");
  auto fresh = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    return factory(t.op(handle, schema, kernel), doc).method_only();
  };
  fresh(ops::new_empty, "new_empty(Tensor self, int[1] size, *, " RL_OPTIONS ") -> Tensor", new_empty_kernel,
        "Uninitialised memory of self's dtype and device.")
      .uninitialized()
      .special_dtypes();
  fresh(ops::new_zeros, "new_zeros(Tensor self, int[1] size, *, " RL_OPTIONS ") -> Tensor",
        new_constant_kernel<0>, "Zeros of self's dtype and device.");
  fresh(ops::new_ones, "new_ones(Tensor self, int[1] size, *, " RL_OPTIONS ") -> Tensor",
        new_constant_kernel<1>, "Ones of self's dtype and device.");
  fresh(ops::new_full, "new_full(Tensor self, int[1] size, Scalar fill_value, *, " RL_OPTIONS ") -> Tensor",
        new_full_kernel, "fill_value in self's dtype, on its device.");
  fresh(ops::new_empty_strided,
        "new_empty_strided(Tensor self, int[] size, int[] stride, *, " RL_OPTIONS ") -> Tensor",
        new_empty_strided_kernel, "Uninitialised memory with given strides, of self's dtype and device.")
      .uninitialized()
      .special_dtypes();
}

void register_ranges(Table& t) {
  auto factory = [](OpBuilder r, const char* doc) {
    r.family(Family::Factory).not_differentiable(kConstant).out().doc(doc);
  };
  t.composite("arange(Scalar end, *, " RL_OPTIONS ") -> Tensor", arange_end_body)
      .out()
      .doc("0, 1, ... below end.");
  factory(t.op(ops::arange,
               "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " RL_OPTIONS ") -> Tensor",
               arange_kernel)
              .on_devices()
              .out_overload("start_out"),
          "start, start + step, ... before end.");
  factory(t.op(ops::range, "range.step(Scalar start, Scalar end, Scalar step=1, *, " RL_OPTIONS ") -> Tensor",
               range_kernel)
              .on_devices()
              .out_overload("out"),
          "start, start + step, ... up to and with end.");
  factory(t.op(ops::linspace, "linspace(Scalar start, Scalar end, int steps, *, " RL_OPTIONS ") -> Tensor",
               linspace_kernel),
          "steps numbers, evenly spaced from start to end.");
  factory(t.op(ops::logspace,
               "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " RL_OPTIONS ") -> Tensor",
               logspace_kernel),
          "Powers of base, their exponents evenly spaced.");
  auto between = [](OpBuilder r) {
    r.no_meta("the numbers are in the tensors").out().doc("The same between numbers that tensors hold.");
  };
#define RL_LINSPACE(kind, bounds) "linspace." kind "(" bounds ", int steps, *, " RL_OPTIONS ") -> Tensor"
#define RL_LOGSPACE(kind, bounds) \
  "logspace." kind "(" bounds ", int steps, float base=10.0, *, " RL_OPTIONS ") -> Tensor"
  between(t.composite(RL_LINSPACE("Tensor_Tensor", "Tensor start, Tensor end"), linspace_of<Tensor, Tensor>));
  between(t.composite(RL_LINSPACE("Tensor_Scalar", "Tensor start, Scalar end"), linspace_of<Tensor, Scalar>));
  between(t.composite(RL_LINSPACE("Scalar_Tensor", "Scalar start, Tensor end"), linspace_of<Scalar, Tensor>));
  between(t.composite(RL_LOGSPACE("Tensor_Tensor", "Tensor start, Tensor end"), logspace_of<Tensor, Tensor>));
  between(t.composite(RL_LOGSPACE("Tensor_Scalar", "Tensor start, Scalar end"), logspace_of<Tensor, Scalar>));
  between(t.composite(RL_LOGSPACE("Scalar_Tensor", "Scalar start, Tensor end"), logspace_of<Scalar, Tensor>));
#undef RL_LINSPACE
#undef RL_LOGSPACE
}

void register_matrices(Table& t) {
  auto factory = [](OpBuilder r, const char* doc) {
    return r.family(Family::Factory).not_differentiable(kConstant).doc(doc);
  };
  static Fn<Tensor(int64_t, OptDType, OptLayout, OptDevice, OptBool)> eye_square;
  factory(t.op(eye_square, "eye(int n, *, " RL_OPTIONS ") -> Tensor", eye_square_kernel).on_devices(),
          "Identity matrix.")
      .out();
  factory(t.op(ops::eye, "eye.m(int n, int m, *, " RL_OPTIONS ") -> Tensor", eye_kernel).on_devices(),
          "Ones on the diagonal of an n x m matrix.")
      .out();
  t.op(ops::tril, "tril(Tensor self, int diagonal=0) -> Tensor", triangle_kernel<false>)
      .inplace()
      .out()
      .doc("The lower triangle; zeros above the diagonal.")
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, int64_t> diagonal) { return ops::tril(g, *diagonal); });
  t.op(ops::triu, "triu(Tensor self, int diagonal=0) -> Tensor", triangle_kernel<true>)
      .inplace()
      .out()
      .doc("The upper triangle; zeros below the diagonal.")
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, int64_t> diagonal) { return ops::triu(g, *diagonal); });
  factory(t.op(ops::tril_indices, "tril_indices(int row, int col, int offset=0, *, " RL_OPTIONS ") -> Tensor",
               triangle_indices_kernel<false>),
          "Row and column numbers of the lower triangle.");
  factory(t.op(ops::triu_indices, "triu_indices(int row, int col, int offset=0, *, " RL_OPTIONS ") -> Tensor",
               triangle_indices_kernel<true>),
          "Row and column numbers of the upper triangle.");
}

}  // namespace

void register_factory_operators(Table& t) {
  register_fills(t);
  register_ranges(t);
  register_matrices(t);
}

}  // namespace rushlight

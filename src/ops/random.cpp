// Fills in place and the factories made of them.
#include "ops/random.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "device/layers.h"
#include "ops/device_multi_tensor.h"
#include "ops/factory.h"
#include "ops/random_common.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

Tensor in_memory_order(const Tensor& t, Dims* order) {
  Dims dims(static_cast<size_t>(t.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, [&](int64_t a, int64_t b) {
    const int64_t left = std::abs(t->strides[a]), right = std::abs(t->strides[b]);
    return left != right ? left > right : t->sizes[a] > t->sizes[b];
  });
  Dims sizes, strides;
  for (int64_t d : dims) {
    sizes.push_back(t->sizes[d]);
    strides.push_back(t->strides[d]);
  }
  if (order) *order = dims;
  return make_view(t, sizes, strides, t.storage_offset(), false);
}

Tensor as_reals(const Tensor& t) {
  if (!is_complex(t.dtype())) return t;
  auto impl = make_ref<TensorImpl>(t->storage, t->offset * 2, real_dtype(t.dtype()), t.device());
  Dims sizes = t->sizes, strides = t->strides;
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  impl->set_layout(sizes, strides);
  return Tensor(std::move(impl));
}

bool draw_on_device(DeviceKernels::Random kind, const Tensor& self, double a, double b, uint64_t range,
                    Generator* generator) {
  return draw_on_device(self, generator, [&](const Tensor& target, Generator& g) {
    const DeviceKernels& kernels = loops::kernels_on(target);
    return kernels.random && kernels.random(kind, target, a, b, range, g);
  });
}

namespace {

using namespace ops;
using Random = DeviceKernels::Random;

double largest(DType t) {
  switch (t) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.fep127;
    case DType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

int significant_bits(DType t) {
  switch (t) {
    case DType::Float16:
      return 11;
    case DType::BFloat16:
      return 8;
    case DType::Float32:
      return 24;
    default:
      return 53;
  }
}

Tensor uniform_kernel(const Call&, const Tensor& self, double from, double to, OptGenerator generator) {
  const Tensor reals = as_reals(self);
  const DType dtype = reals.dtype();
  if (!is_floating(dtype) || is_float8(dtype))
    RL_NOT_IMPLEMENTED("\"check_uniform_bounds\" not implemented for '", legacy_name(dtype), "'");
  const double limit = largest(dtype);
  RL_CHECK(from >= -limit && from <= limit, "from is out of bounds for ", cpp_name(dtype));
  RL_CHECK(to >= -limit && to <= limit, "to is out of bounds for ", cpp_name(dtype));
  RL_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  RL_CHECK(to - from <= limit, "uniform_ expects to-from <= std::numeric_limits<", legacy_name(dtype),
           ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
  if (draw_on_device(Random::Uniform, reals, from, to, 0, generator)) return self;
  write_random(
      reals, [&](cpu::RandomOut out) { cpu::fill_uniform(out, from, to, generator_or_default(generator)); });
  return self;
}

void fill_normal(const Tensor& self, double mean, double std, OptGenerator generator) {
  RL_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  const Tensor reals = as_reals(self);
  if (is_complex(self.dtype())) std /= std::sqrt(2.0);
  if (draw_on_device(Random::Normal, reals, mean, std, 0, generator)) return;
  const bool blocks = reals.is_contiguous();
  write_random(reals, [&](cpu::RandomOut out) {
    cpu::fill_normal(out, mean, std, blocks, generator_or_default(generator));
  });
}

Tensor normal_kernel(const Call&, const Tensor& self, double mean, double std, OptGenerator generator) {
  fill_normal(self, mean, std, generator);
  return self;
}

Tensor log_normal_kernel(const Call&, const Tensor& self, double mean, double std, OptGenerator generator) {
  RL_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  write_random(self, [&](cpu::RandomOut out) {
    cpu::fill_log_normal(out, mean, std, generator_or_default(generator));
  });
  return self;
}

Tensor cauchy_kernel(const Call&, const Tensor& self, double median, double sigma, OptGenerator generator) {
  RL_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  RL_CHECK(is_floating(self.dtype()),
           "Cauchy distribution is a continuous probability distribution. dtype must be a "
           "floating point but you specified ",
           self.dtype());
  write_random(self, [&](cpu::RandomOut out) {
    cpu::fill_cauchy(out, median, sigma, generator_or_default(generator));
  });
  return self;
}

Tensor exponential_kernel(const Call&, const Tensor& self, double lambd, OptGenerator generator) {
  RL_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  RL_CHECK(is_floating(self.dtype()),
           "Exponential distribution is a continuous probability distribution. dtype must be "
           "a floating point but you specified ",
           legacy_name(self.dtype()));
  if (draw_on_device(Random::Exponential, self, lambd, 0, 0, generator)) return self;
  write_random(
      self, [&](cpu::RandomOut out) { cpu::fill_exponential(out, lambd, generator_or_default(generator)); });
  return self;
}

Tensor geometric_kernel(const Call&, const Tensor& self, double p, OptGenerator generator) {
  RL_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  write_random(self,
               [&](cpu::RandomOut out) { cpu::fill_geometric(out, p, generator_or_default(generator)); });
  return self;
}

Tensor bernoulli_kernel(const Call&, const Tensor& self, double p, OptGenerator generator) {
  RL_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (draw_on_device(Random::Bernoulli, self, p, 0, 0, generator)) return self;
  write_random(self,
               [&](cpu::RandomOut out) { cpu::fill_bernoulli(out, p, generator_or_default(generator)); });
  return self;
}

uint64_t count_of_integers(DType t);

Tensor random_kernel(const Call&, const Tensor& self, OptGenerator generator) {
  if (draw_on_device(Random::Integers, self, 0, 0, count_of_integers(self.dtype()), generator)) return self;
  write_random(self, [&](cpu::RandomOut out) { cpu::fill_integers(out, generator_or_default(generator)); });
  return self;
}

// The nearest integers inside [from, to) that a float type represents, where its rounding would leave the
// range.
int64_t toward_inside(DType t, int64_t value, int64_t step) {
  auto rounded = [&](int64_t v) {
    double d = static_cast<double>(v);
    if (t == DType::Float16)
      d = static_cast<float>(Half(static_cast<float>(v)));
    else if (t == DType::BFloat16)
      d = static_cast<float>(BFloat16(static_cast<float>(v)));
    else if (t == DType::Float32)
      d = static_cast<float>(v);
    const int64_t beyond =
        step > 0 && d > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    return std::abs(d) < 0x1p63 ? static_cast<int64_t>(d) : beyond;
  };
  if (value == (step > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min()))
    return value;
  const int64_t inner = value + step, found = rounded(inner);
  if (step > 0 ? found >= value : found < value) return value;
  int bits = 0;
  for (auto magnitude = inner < 0 ? 0 - static_cast<uint64_t>(inner) : static_cast<uint64_t>(inner);
       magnitude >>= 1;)
    ++bits;
  return found + step * (int64_t{1} << (bits - significant_bits(t) + 1));
}

struct IntegerBounds {
  int64_t least, most;
};

IntegerBounds integer_bounds(DType t) {
  switch (t) {
    case DType::Bool:
      return {0, 1};
    case DType::UInt8:
      return {0, UINT8_MAX};
    case DType::Int8:
      return {INT8_MIN, INT8_MAX};
    case DType::Int16:
      return {INT16_MIN, INT16_MAX};
    case DType::Int32:
      return {INT32_MIN, INT32_MAX};
    case DType::UInt16:
      return {0, UINT16_MAX};
    case DType::UInt32:
      return {0, UINT32_MAX};
    case DType::UInt64:
      return {0, INT64_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

// From 0 to the last one that a type represents, and all before.
uint64_t count_of_integers(DType t) {
  if (is_floating(t)) return (uint64_t{1} << significant_bits(t)) + 1;
  return static_cast<uint64_t>(integer_bounds(t).most) + 1;
}

void check_range(DType t, int64_t from, int64_t last) {
  auto check = [&](int64_t value, std::string_view name) {
    if (!is_floating(t)) {
      const IntegerBounds bounds = integer_bounds(t);
      RL_CHECK(value >= bounds.least && value <= bounds.most, name, " is out of bounds for ", cpp_name(t));
      return;
    }
    RL_CHECK(std::abs(static_cast<double>(value)) <= largest(t), name, " is out of bounds for ", cpp_name(t));
    const int bits = significant_bits(t);
    if (value < -(int64_t{1} << bits) || value > int64_t{1} << bits)
      show_warning(str(
          name, " is out of bounds [-(2^", bits, "), 2^", bits, "]. Due to precision limitations ",
          cpp_name(t),
          " can support discrete uniform distribution only within this range. This warning will become an "
          "error in version 1.7 release, please fix the code in advance"));
  };
  check(from, "from");
  check(last, "to - 1");
}

Tensor random_from_kernel(const Call&, const Tensor& self, int64_t from, OptInt to, OptGenerator generator) {
  const DType dtype = self.dtype();
  RL_CHECK(!is_complex(dtype), "check_random_bounds handles only integral, floating-point and boolean types");
  Generator& g = generator_or_default(generator);
  uint64_t range = 0;
  if (to) {
    int64_t end = *to;
    RL_CHECK(from < end, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", end);
    if (is_floating(dtype)) {
      from = toward_inside(dtype, from, 1);
      end = toward_inside(dtype, end, -1);
      RL_CHECK(from < end,
               "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=",
               from, " >= to=", end);
    }
    check_range(dtype, from, end - 1);
    range = static_cast<uint64_t>(end) - static_cast<uint64_t>(from);
  } else if (from == std::numeric_limits<int64_t>::lowest()) {
    if (draw_on_device(Random::Integers, self, 0, 0, 0, generator)) return self;
    write_random(self, [&](cpu::RandomOut out) { cpu::fill_integers64(out, g); });
    return self;
  } else {
    int64_t last = dtype == DType::UInt64 ? -1 : integer_bounds(dtype).most;
    if (is_floating(dtype)) {
      last = int64_t{1} << significant_bits(dtype);
      from = toward_inside(dtype, from, 1);
      RL_CHECK(
          from < last,
          "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but "
          "got from=",
          from, " > to_inc=", last);
    }
    check_range(dtype, from, last);
    range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  }
  if (draw_on_device(Random::Integers, self, static_cast<double>(from), 0, range, generator)) return self;
  write_random(self, [&](cpu::RandomOut out) { cpu::fill_integers(out, from, range, g); });
  return self;
}

Tensor random_to_kernel(const Call& call, const Tensor& self, int64_t to, OptGenerator generator) {
  return random_from_kernel(call, self, 0, to, generator);
}

Tensor make(const Call& call, IntList size, OptDType dtype, OptDevice device, std::optional<Layout> layout) {
  RL_CHECK(layout.value_or(Layout::Strided) == Layout::Strided, call.op.name(),
           ": only strided tensors can be random");
  for (int64_t n : size) RL_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", size);
  RL_CHECK(!dtype || !call.out || *dtype == call.out->dtype(), "dtype ", legacy_name(*dtype),
           " does not match dtype of out parameter (", legacy_name(call.out->dtype()), ")");
  const DType fallback = call.out ? call.out->dtype() : get_default_dtype();
  return call.output(size, dtype.value_or(fallback), device.value_or(Device{}));
}

Tensor rand_kernel(const Call& call, IntList size, OptGenerator generator, OptDType dtype,
                   std::optional<Layout> layout, OptDevice device, std::optional<bool>) {
  return uniform_kernel(call, make(call, size, dtype, device, layout), 0, 1, generator);
}

Tensor randn_kernel(const Call& call, IntList size, OptGenerator generator, OptDType dtype,
                    std::optional<Layout> layout, OptDevice device, std::optional<bool>) {
  return normal_kernel(call, make(call, size, dtype, device, layout), 0, 1, generator);
}

Tensor normal_size_kernel(const Call& call, double mean, double std, IntList size, OptGenerator generator,
                          OptDType dtype, std::optional<Layout> layout, OptDevice device,
                          std::optional<bool>) {
  return normal_kernel(call, make(call, size, dtype, device, layout), mean, std, generator);
}

Tensor randint_low_kernel(const Call& call, int64_t low, int64_t high, IntList size, OptGenerator generator,
                          OptDType dtype, std::optional<Layout> layout, OptDevice device,
                          std::optional<bool>) {
  if (!dtype && !call.out) dtype = DType::Int64;
  return random_from_kernel(call, make(call, size, dtype, device, layout), low, high, generator);
}

Tensor randint_kernel(const Call& call, int64_t high, IntList size, OptGenerator generator, OptDType dtype,
                      std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory) {
  return randint_low_kernel(call, 0, high, size, generator, dtype, layout, device, pin_memory);
}

// By random keys, which are sorted: with PyTorch's numbers. As many bits of them as make equal keys unlikely.
void permute_on_device(const Tensor& result, OptGenerator generator) {
  const int64_t n = result.numel();
  const double count = static_cast<double>(n), threshold = std::log(0.9) * 12;
  const int bits =
      std::min(64, static_cast<int>(std::ceil(std::log2(count - (6 * count * count + 1) / threshold))));
  const bool wide = bits > 32;
  const Device device = result.device();
  const Tensor keys = empty_tensor({n}, wide ? DType::Int64 : DType::Int32, device);
  draw_on_device(Random::Integers, keys, wide ? -0x1p63 : -0x1p31, 0, wide ? UINT64_MAX : UINT32_MAX,
                 generator);
  Generator& g = generator ? *generator : device_generator(device.index());
  const Generator::Place place = g.take(static_cast<uint64_t>(n));
  const bool direct = result.dtype() == DType::Int64 && result.is_contiguous();
  const Tensor order = direct ? result : empty_tensor({n}, DType::Int64, device);
  device_layers(result)->order.permutation(device.index(), keys.data_ptr(), wide, bits, n, place.seed,
                                           place.offset, place.base, order.data<int64_t>());
  if (!direct) copy_result(result, order, false);
}

Tensor randperm_kernel(const Call& call, int64_t n, OptGenerator generator, OptDType dtype,
                       std::optional<Layout> layout, OptDevice device, std::optional<bool>) {
  if (!dtype && !call.out) dtype = DType::Int64;
  const Tensor result = make(call, {n}, dtype, device, layout);
  const DType t = result.dtype();
  if (is_floating(t)) {
    // PyTorch sets bfloat16 no bound: its numbers repeat then, as they are rounded.
    const int64_t most = (int64_t{1} << significant_bits(t)) + 1;
    RL_CHECK(n <= most || t == DType::BFloat16, "n cannot be greater than ", most, " for ", legacy_name(t),
             " type.");
  } else {
    if (is_bool(t)) RL_NOT_IMPLEMENTED("\"randperm\" not implemented for 'Bool'");
    RL_CHECK(n - 1 <= integer_bounds(t).most, "value cannot be converted to type ", dtype_name(t),
             "_t without overflow");
  }
  if (result.device().is_cuda() && n > 0) {
    permute_on_device(result, generator);
    return result;
  }
  write_random(result,
               [&](cpu::RandomOut out) { cpu::fill_permutation(out, generator_or_default(generator)); });
  return result;
}

Tensor like(const Tensor& self, OptDType dtype, std::optional<Layout> layout, OptDevice device,
            std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
  return empty_like(self, dtype, layout, device, pin_memory, format);
}

Tensor rand_like_kernel(const Call& call, const Tensor& self, OptGenerator generator, OptDType dtype,
                        std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory,
                        std::optional<MemoryFormat> format) {
  return uniform_kernel(call, like(self, dtype, layout, device, pin_memory, format), 0, 1, generator);
}

Tensor randn_like_kernel(const Call& call, const Tensor& self, OptGenerator generator, OptDType dtype,
                         std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory,
                         std::optional<MemoryFormat> format) {
  return normal_kernel(call, like(self, dtype, layout, device, pin_memory, format), 0, 1, generator);
}

Tensor randint_like_low_kernel(const Call& call, const Tensor& self, int64_t low, int64_t high,
                               OptGenerator generator, OptDType dtype, std::optional<Layout> layout,
                               OptDevice device, std::optional<bool> pin_memory,
                               std::optional<MemoryFormat> format) {
  return random_from_kernel(call, like(self, dtype, layout, device, pin_memory, format), low, high,
                            generator);
}

Tensor randint_like_kernel(const Call& call, const Tensor& self, int64_t high, OptGenerator generator,
                           OptDType dtype, std::optional<Layout> layout, OptDevice device,
                           std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
  return randint_like_low_kernel(call, self, 0, high, generator, dtype, layout, device, pin_memory, format);
}

// What was there before is overwritten: no gradient reaches it.
constexpr auto no_gradient = [](Grad g) { return zeros_like(g); };

void register_fills(Table& t) {
  auto fill = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    return t.op(handle, schema, kernel).family(Family::Random).doc(doc).method_only().derivative(no_gradient);
  };
  fill(uniform_,
       "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
       uniform_kernel, "Fills with numbers uniform on [from, to).")
      .on_devices();
  fill(normal_,
       "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)",
       normal_kernel, "Fills with normal numbers.")
      .on_devices();
  fill(log_normal_,
       "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
       log_normal_kernel, "Fills with numbers whose logarithm is normal with this mean and std.");
  fill(cauchy_,
       "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
       cauchy_kernel, "Fills with numbers of the Cauchy distribution.");
  fill(exponential_,
       "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
       exponential_kernel, "Fills with numbers of the exponential distribution of rate lambd.")
      .on_devices();
  fill(geometric_, "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
       geometric_kernel, "Fills with numbers of trials up to the first success of probability p.");
  fill(bernoulli_,
       "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
       bernoulli_kernel, "Fills with ones of probability p, else zeros.")
      .on_devices();
  fill(random_, "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", random_kernel,
       "Fills with integers from 0 to the largest that the dtype represents exactly.")
      .on_devices();
  fill(random_to_, "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
       random_to_kernel, "Fills with integers uniform on [0, to).")
      .on_devices();
  fill(random_from_,
       "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
       random_from_kernel,
       "Fills with integers uniform on [from, to); without `to` up to the dtype's largest.")
      .on_devices();
}

#define RL_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define RL_LIKE RL_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor"

void register_factories(Table& t) {
  auto factory = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    return t.op(handle, schema, kernel)
        .family(Family::Factory)
        .doc(doc)
        .function_only()
        .out()
        .not_differentiable("made from nothing");
  };
  factory(rand, "rand(int[] size, *, Generator? generator=None, " RL_OPTIONS ") -> Tensor", rand_kernel,
          "Numbers uniform on [0, 1).")
      .on_devices();
  factory(randn, "randn(int[] size, *, Generator? generator=None, " RL_OPTIONS ") -> Tensor", randn_kernel,
          "Numbers of the standard normal distribution.")
      .on_devices();
  factory(randint, "randint(int high, int[] size, *, Generator? generator=None, " RL_OPTIONS ") -> Tensor",
          randint_kernel, "Integers uniform on [0, high).")
      .on_devices();
  factory(randint_low,
          "randint.low(int low, int high, int[] size, *, Generator? generator=None, " RL_OPTIONS
          ") -> Tensor",
          randint_low_kernel, "Integers uniform on [low, high).")
      .on_devices();
  factory(randperm, "randperm(int n, *, Generator? generator=None, " RL_OPTIONS ") -> Tensor",
          randperm_kernel, "The integers 0 to n - 1 in random order.")
      .on_devices()
      .batching(Batching::RandomEach);
  factory(normal_size,
          "normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, " RL_OPTIONS
          ") -> Tensor",
          normal_size_kernel, "Normal numbers with one mean and std.")
      .out_apart(kAllOperands);

  auto alike = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    return t.op(handle, schema, kernel)
        .family(Family::Factory)
        .doc(doc)
        .function_only()
        .on_devices()
        .batching(Batching::RandomLike)
        .not_differentiable("only the shape is used");
  };
  alike(rand_like, "rand_like(Tensor self, *, Generator? generator=None, " RL_LIKE, rand_like_kernel,
        "Numbers uniform on [0, 1), shaped like the input.");
  alike(randn_like, "randn_like(Tensor self, *, Generator? generator=None, " RL_LIKE, randn_like_kernel,
        "Standard normal numbers, shaped like the input.");
  alike(randint_like, "randint_like(Tensor self, int high, *, Generator? generator=None, " RL_LIKE,
        randint_like_kernel, "Integers uniform on [0, high), shaped like the input.");
  alike(randint_like_low,
        "randint_like.low_dtype(Tensor self, int low, int high, *, Generator? generator=None, " RL_LIKE,
        randint_like_low_kernel, "Integers uniform on [low, high), shaped like the input.");
}

#undef RL_LIKE
#undef RL_OPTIONS

}  // namespace

void register_random_operators(Table& t) {
  register_fills(t);
  register_factories(t);
}

}  // namespace rushlight

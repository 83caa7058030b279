#include "serve/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/half.h"
#include "serve/json_text.h"

namespace rushlight::serve {
namespace {

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::Bool, "BOOL"},     {DType::UInt8, "UINT8"},  {DType::UInt16, "UINT16"}, {DType::UInt32, "UINT32"},
    {DType::UInt64, "UINT64"}, {DType::Int8, "INT8"},    {DType::Int16, "INT16"},   {DType::Int32, "INT32"},
    {DType::Int64, "INT64"},   {DType::Float16, "FP16"}, {DType::Float32, "FP32"},  {DType::Float64, "FP64"},
    {DType::BFloat16, "BF16"},
};

// Calls f with a value of the type's.
template <class F>
void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f(bool());
    case DType::UInt8:
      return f(uint8_t());
    case DType::UInt16:
      return f(uint16_t());
    case DType::UInt32:
      return f(uint32_t());
    case DType::UInt64:
      return f(uint64_t());
    case DType::Int8:
      return f(int8_t());
    case DType::Int16:
      return f(int16_t());
    case DType::Int32:
      return f(int32_t());
    case DType::Int64:
      return f(int64_t());
    case DType::Float16:
      return f(Half());
    case DType::Float32:
      return f(float());
    case DType::Float64:
      return f(double());
    case DType::BFloat16:
      return f(BFloat16());
    default:
      RL_FAIL_AS(Value, "the protocol has no tensors of ", dtype);
  }
}

int64_t count_of(const std::vector<int64_t>& sizes, std::string_view what) {
  int64_t count = 1;
  for (const int64_t n : sizes)
    RL_CHECK_VALUE(!__builtin_mul_overflow(count, n, &count) && count < (int64_t{1} << 40), what,
                   " is too large");
  return count;
}

// Puts what JSON holds into memory, element by element.
template <class T>
class Filler {
 public:
  Filler(T* to, int64_t room, std::string_view what) : to_(to), room_(room), what_(what) {}

  void add(const io::Json& value) {
    if (const auto* numbers = value.numbers()) {
      check_room(numbers->size());
      for (const int64_t i : numbers->whole) put(i);
      for (const double x : numbers->real) put(x);
    } else if (const auto* list = value.list()) {
      for (const io::Json& item : *list) add(item);
    } else if (const bool* b = value.boolean()) {
      RL_CHECK_VALUE((std::is_same_v<T, bool>), what_, " holds true or false, but is not BOOL");
      check_room(1), *to_++ = static_cast<T>(*b), --room_;
    } else {
      RL_CHECK_VALUE(value.is_number(), what_, " holds something that is no number");
      check_room(1);
      value.integer() ? put(*value.integer()) : put(value.number());
    }
  }
  void finish() const { RL_CHECK_VALUE(!room_, what_, " has ", room_, " numbers less than its shape says"); }

 private:
  void check_room(size_t n) const {
    RL_CHECK_VALUE(static_cast<int64_t>(n) <= room_, what_, " has more numbers than its shape says");
  }
  void put(int64_t i) {
    bool good = true;
    if constexpr (std::is_same_v<T, bool>)
      good = i == 0 || i == 1;
    else if constexpr (std::is_integral_v<T>)
      good = std::in_range<T>(i);
    RL_CHECK_VALUE(good, what_, " holds ", i, ", which its type does not");
    if constexpr (std::is_integral_v<T>)
      *to_++ = static_cast<T>(i), --room_;
    else
      put(static_cast<double>(i));
  }
  void put(double x) {
    if constexpr (std::is_integral_v<T>) {
      RL_CHECK_VALUE(x == std::floor(x) && std::abs(x) < 9007199254740992.0, what_, " holds ", x,
                     ", but its type has whole numbers");
      put(static_cast<int64_t>(x));
    } else if constexpr (std::is_same_v<T, double>) {
      *to_++ = x, --room_;
    } else {
      const T value(static_cast<float>(x));
      RL_CHECK_VALUE(std::isfinite(static_cast<float>(value)), what_, " holds ", x,
                     ", which its type does not");
      *to_++ = value, --room_;
    }
  }

  T* to_;
  int64_t room_;
  std::string_view what_;
};

}  // namespace

std::string_view protocol_name(DType dtype) {
  const auto found = std::ranges::find(kNames, dtype, &std::pair<DType, std::string_view>::first);
  return found == std::end(kNames) ? std::string_view() : found->second;
}

std::vector<int64_t> sizes_from(const io::Json& list, std::string_view what) {
  const auto* numbers = list.numbers();
  const bool empty = list.list() && list.list()->empty();
  RL_CHECK_VALUE(empty || (numbers && numbers->real.empty() && numbers->size() <= 64), what,
                 ": its shape is no list of whole numbers");
  if (empty) return {};
  for (const int64_t n : numbers->whole) RL_CHECK_VALUE(n >= 0, what, ": its shape has a size below zero");
  return numbers->whole;
}

Tensor tensor_from_json(const io::Json& data, DType dtype, const std::vector<int64_t>& sizes,
                        std::string_view what) {
  const int64_t count = count_of(sizes, what);
  RL_CHECK_VALUE(data.list() || data.numbers() || (sizes.empty() && data.is_number()), what,
                 ": its data is no list");
  // What a few bytes of text claim to be must not take gigabytes before they are counted.
  size_t given = 0;
  auto add = [&](auto&& self, const io::Json& value) -> void {
    if (const auto* list = value.list())
      for (const io::Json& item : *list) self(self, item);
    else
      given += value.numbers() ? value.numbers()->size() : 1;
  };
  add(add, data);
  RL_CHECK_VALUE(static_cast<int64_t>(given) == count, what, " has ", given, " elements, but its shape says ",
                 count);
  Tensor t = empty_tensor(sizes, dtype);
  with_type(dtype, [&](auto zero) {
    Filler filler(t.data<decltype(zero)>(), count, what);
    filler.add(data);
    filler.finish();
  });
  return t;
}

Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const std::vector<int64_t>& sizes,
                         std::string_view what) {
  const auto needed = static_cast<size_t>(count_of(sizes, what)) * element_size(dtype);
  RL_CHECK_VALUE(bytes.size() == needed, what, " has ", bytes.size(), " bytes, but its shape and type say ",
                 needed);
  Tensor t = empty_tensor(sizes, dtype);
  if (is_bool(dtype)) {  // any other byte would be no bool
    std::ranges::transform(bytes, t.data<bool>(), [](char c) { return c != 0; });
  } else if (needed) {
    std::memcpy(t.data_ptr(), bytes.data(), needed);
  }
  return t;
}

bool append_elements(std::string& out, const Tensor& t) {
  bool finite = true;
  out += '[';
  with_type(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = t.data<T>();
    for (int64_t i = 0; i < t.numel() && finite; ++i) {
      if (i) out += ',';
      if constexpr (std::is_same_v<T, bool>) {
        out += from[i] ? "true" : "false";
      } else if constexpr (std::is_integral_v<T>) {
        append_number(out, from[i]);
      } else {
        using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const Real value = static_cast<Real>(from[i]);
        finite = std::isfinite(value);
        if (finite) append_number(out, value);
      }
    }
  });
  out += ']';
  return finite;
}

std::string_view bytes_of(const Tensor& t) {
  return t.numel() ? std::string_view(static_cast<const char*>(t.data_ptr()), t.nbytes())
                   : std::string_view();
}

}  // namespace rushlight::serve

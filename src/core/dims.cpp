#include "core/dims.h"

#include <ostream>

namespace rushlight {

std::ostream& operator<<(std::ostream& out, IntList list) { return out << to_string(list); }

std::string to_string(IntList list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += str(i ? ", " : "", list[i]);
  return out + "]";
}

int64_t checked_numel(IntList sizes) {
  for (int64_t s : sizes)
    RL_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
  int64_t numel = 1;  // from the left: what follows a zero cannot overflow, what precedes it can
  for (int64_t s : sizes)
    RL_CHECK(!__builtin_mul_overflow(numel, s, &numel),
             "Storage size calculation overflowed with sizes=", sizes);
  return numel;
}

Dims contiguous_strides(IntList sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;  // of sizes that are refused later it may wrap
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    static_cast<void>(__builtin_mul_overflow(step, std::max<int64_t>(sizes[i], 1), &step));
  }
  return strides;
}

Dims channels_last_strides(IntList sizes) {
  const size_t n = sizes.size();
  RL_CHECK(n == 4 || n == 5, "required rank ", n == 5 ? 5 : 4, " tensor to use channels_last format, got ", n,
           " dimensions");
  Dims strides(n);
  int64_t step = 1;
  auto place = [&](size_t d) {
    strides[d] = step;
    static_cast<void>(__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step));
  };
  place(1);
  for (size_t d = n - 1; d >= 2; --d) place(d);
  place(0);
  return strides;
}

int64_t wrap_dim(int64_t dim, int64_t n, bool wrap_scalar) {
  if (n == 0) {
    RL_CHECK_INDEX(wrap_scalar, "Dimension specified as ", dim, " but tensor has no dimensions");
    n = 1;
  }
  RL_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ",
                 n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Dims broadcast_shapes(IntList a, IntList b) {
  const size_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (size_t i = 0; i < n; ++i) {  // i counts from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    RL_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (",
             y, ") at non-singleton dimension ", n - 1 - i, " (shapes ", a, " and ", b, " do not broadcast)");
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace rushlight

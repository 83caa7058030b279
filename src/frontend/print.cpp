// Tensors, options and types on streams, as PyTorch's C++ library prints them.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "rushlight/tensor.h"

namespace rushlight {

const char* toString(ScalarType t) { return legacy_name(t).data(); }
std::ostream& operator<<(std::ostream& out, ScalarType t) { return out << legacy_name(t); }
std::ostream& operator<<(std::ostream& out, DeviceType t) { return out << device_type_name(t); }
std::ostream& operator<<(std::ostream& out, const Device& d) { return out << to_string(d); }
std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  if (s.is_floating()) return out << s.to_double();
  if (s.is_complex()) return out << s.to<complex128>();
  if (s.is_bool()) return out << (s.to<bool>() ? "true" : "false");
  return out << s.to_int();
}
std::ostream& operator<<(std::ostream& out, const TensorOptions& o) {
  auto default_mark = [](bool given) { return given ? "" : " (default)"; };
  return out << std::boolalpha << "TensorOptions(dtype=" << dtype_name(o.dtype())
             << default_mark(o.has_dtype()) << ", device=" << o.device() << default_mark(o.has_device())
             << ", layout=" << (o.layout() == kStrided ? "Strided" : "Sparse") << default_mark(o.has_layout())
             << ", requires_grad=" << o.requires_grad() << default_mark(o.has_requires_grad())
             << ", pinned_memory=" << o.pinned_memory() << default_mark(o.pin_memory_opt().has_value())
             << ", memory_format="
             << (o.memory_format_opt() ? memory_format_name(*o.memory_format_opt()) : "(nullopt)") << ")";
}

namespace {

// Restores the stream's format.
class FormatGuard {
 public:
  explicit FormatGuard(std::ostream& out) : out_(out), saved_(nullptr) { saved_.copyfmt(out); }
  ~FormatGuard() { out_.copyfmt(saved_); }
  FormatGuard(const FormatGuard&) = delete;

 private:
  std::ostream& out_;
  std::ios saved_;
};

struct Format {
  double scale = 1;
  int width = 0;
};

// Decimal digits before the point; 1 for zero.
double digits(double z) { return z != 0 ? std::floor(std::log10(z)) + 1 : 1; }

// Sets the stream up for the numbers of one matrix.
Format choose_format(std::ostream& out, const double* values, int64_t n) {
  if (n == 0) return {1, 0};
  bool integers = true, any = false;
  double smallest = 0, largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double z = values[i];
    if (!std::isfinite(z)) continue;
    integers = integers && z == std::ceil(z);
    smallest = any ? std::min(smallest, std::fabs(z)) : std::fabs(z);
    largest = any ? std::max(largest, std::fabs(z)) : std::fabs(z);
    any = true;
  }
  const double low = any ? digits(smallest) : 1, high = any ? digits(largest) : 1;
  if (integers) {
    if (high > 9) {
      out << std::scientific << std::setprecision(4);
      return {1, 11};
    }
    out << std::defaultfloat;
    return {1, static_cast<int>(high) + 1};
  }
  if (high - low > 4) {
    out << std::scientific << std::setprecision(4);
    return {1, std::fabs(high) > 99 || std::fabs(low) > 99 ? 12 : 11};
  }
  out << std::fixed << std::setprecision(4);
  if (high > 5 || high < 0) return {std::pow(10, high - 1), 7};
  return {1, high == 0 ? 7 : static_cast<int>(high) + 6};
}

void print_scale(std::ostream& out, double scale) {
  FormatGuard guard(out);
  out << std::defaultfloat << scale << " *\n";
}

void print_matrix(std::ostream& out, const double* values, int64_t rows, int64_t columns, int64_t line_size,
                  int indent) {
  const Format f = choose_format(out, values, rows * columns);
  const std::string margin(static_cast<size_t>(indent), ' ');
  out << margin;
  const int64_t per_line = std::max<int64_t>(1, (line_size - indent) / (f.width + 1));
  for (int64_t first = 0; first < columns; first += per_line) {
    const int64_t last = std::min(first + per_line, columns) - 1;
    if (per_line < columns) {
      if (first != 0) out << '\n';
      out << "Columns " << first + 1 << " to " << last + 1 << margin;
    }
    if (f.scale != 1) {
      print_scale(out, f.scale);
      out << margin;
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = first; c <= last; ++c) {
        out << std::setw(f.width) << values[r * columns + c] / f.scale;
        if (c != last)
          out << ' ';
        else if (r == rows - 1)
          out << '\n';
        else
          out << '\n' << (f.scale != 1 ? margin + ' ' : margin);
      }
  }
}

// Matrices of the last two dimensions, the first dimension running fastest.
void print_slices(std::ostream& out, const Tensor& t, const double* values, int64_t line_size) {
  const size_t leading = static_cast<size_t>(t.dim()) - 2;
  const int64_t rows = t.size(-2), columns = t.size(-1);
  std::vector<int64_t> at(leading, 0);
  for (bool start = true;; start = false) {
    if (!start) out << '\n';
    out << '(';
    int64_t position = 0;
    for (size_t d = 0; d < leading; ++d) {
      position += at[d] * t.stride(static_cast<int64_t>(d));
      out << at[d] + 1 << ',';
    }
    out << ".,.) = \n";
    print_matrix(out, values + position, rows, columns, line_size, 1);
    size_t d = 0;
    while (d < leading && ++at[d] == t.sizes()[d]) at[d++] = 0;
    if (d == leading) return;
  }
}

void print_values(std::ostream& out, const Tensor& t, int64_t line_size) {
  const Tensor plain = (t.layout() == kStrided ? t : t.to_dense())
                           .detach()
                           .to(Device(kCPU), kDouble)
                           .resolve_neg()
                           .contiguous();
  const double* values = static_cast<const double*>(plain.data_ptr());
  if (t.dim() == 0) {
    out << std::defaultfloat << values[0] << '\n';
  } else if (t.dim() == 1) {
    const Format f = choose_format(out, values, t.numel());
    if (f.scale != 1) print_scale(out, f.scale);
    for (int64_t i = 0; i < t.numel(); ++i) out << std::setw(f.width) << values[i] / f.scale << '\n';
  } else if (t.dim() == 2) {
    print_matrix(out, values, t.size(0), t.size(1), line_size, 0);
  } else {
    print_slices(out, plain, values, line_size);
  }
}

}  // namespace

std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size) {
  FormatGuard guard(out);
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  if (t.numel() > 0 && !t.device().is_meta()) print_values(out, t, line_size);
  out << "[ " << t.toString() << "{";
  for (int64_t d = 0; d < t.dim(); ++d) out << (d ? "," : "") << t.size(d);
  return out << "} ]";
}
void print(const Tensor& t, int64_t line_size) { print(std::cout, t, line_size); }
std::ostream& operator<<(std::ostream& out, const Tensor& t) { return print(out, t); }
std::ostream& operator<<(std::ostream& out, TensorList list) {
  for (size_t i = 0; i < list.size(); ++i) out << (i ? "\n" : "") << list[i];
  return out;
}

}  // namespace rushlight

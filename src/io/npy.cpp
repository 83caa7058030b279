#include "io/npy.h"

#include <charconv>
#include <cstring>

#include "core/pending.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "ops/copy.h"

namespace rushlight::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// descr of the header, without its byte order.
constexpr std::pair<DType, std::string_view> kCodes[] = {
    {DType::Bool, "b1"},      {DType::UInt8, "u1"},      {DType::Int8, "i1"},    {DType::Int16, "i2"},
    {DType::Int32, "i4"},     {DType::Int64, "i8"},      {DType::UInt16, "u2"},  {DType::UInt32, "u4"},
    {DType::UInt64, "u8"},    {DType::Float16, "f2"},    {DType::Float32, "f4"}, {DType::Float64, "f8"},
    {DType::Complex64, "c8"}, {DType::Complex128, "c16"}};

// The header is the text of a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  DType dtype() const {
    std::string_view rest = after("'descr'");
    if (!rest.starts_with('\'') || rest.find('\'', 1) == std::string_view::npos)
      fail("it holds records, not numbers");
    rest = rest.substr(1, rest.find('\'', 1) - 1);
    if (rest.starts_with('>'))
      fail("its numbers are big-endian; write it with array.astype(array.dtype.newbyteorder('='))");
    for (const auto& [dtype, code] : kCodes)
      if (rest.size() > 1 && rest.substr(1) == code) return dtype;
    fail(str("its type '", rest, "' is none of tensors; write it with array.astype('float32') or another"));
  }
  bool fortran_order() const { return after("'fortran_order'").starts_with("True"); }
  Dims shape() const {
    std::string_view rest = after("'shape'");
    Dims sizes;
    if (!rest.starts_with('(')) fail("its header has no shape");
    rest.remove_prefix(1);
    for (;;) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
      if (rest.starts_with(')')) return sizes;
      int64_t n = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
      if (error != std::errc{} || n < 0 || sizes.size() == 64) fail("its header has no shape");
      sizes.push_back(n);
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    }
  }
  [[noreturn]] void fail(const std::string& what) const { RL_FAIL("cannot read '", path_, "': ", what); }

 private:
  std::string_view after(std::string_view key) const {
    const size_t at = text_.find(key);
    const size_t colon = at == text_.npos ? at : text_.find(':', at);
    if (colon == text_.npos) fail(str("its header has no ", key));
    const std::string_view rest = text_.substr(colon + 1);
    return rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  std::string_view text_;
  const std::string& path_;
};

}  // namespace

Tensor read_npy(const std::string& path) {
  const Ref<MappedFile> file = MappedFile::open(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->size());
  auto check = [&](bool good, std::string_view what) { RL_CHECK(good, "cannot read '", path, "': ", what); };
  check(bytes.size() >= 12 && bytes.starts_with(kMagic), "it is no .npy file, as numpy.save writes them");
  const bool wide = bytes[6] > 1;  // the header's length has two bytes in version 1, then four
  size_t length = 0;
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  const size_t start = wide ? 12 : 10;
  check(length <= bytes.size() - start, "it was cut short");
  const HeaderReader header(bytes.substr(start, length), path);
  const DType dtype = header.dtype();
  Dims sizes = header.shape();
  const auto count = static_cast<size_t>(checked_numel(sizes));
  const size_t room = bytes.size() - start - length;
  check(count <= room / element_size(dtype), "it was cut short");
  const bool fortran = header.fortran_order();
  if (fortran) std::reverse(sizes.begin(), sizes.end());
  Tensor t = empty_tensor(sizes, dtype);
  if (count) std::memcpy(t.data_ptr(), bytes.data() + start + length, count * element_size(dtype));
  if (!fortran) return t;
  Dims strides(t.strides().begin(), t.strides().end());
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return make_view(t, sizes, strides, 0, false);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const Tensor t = ops::contiguous(is_pending(tensor) ? ops::clone(tensor) : tensor);
  const auto code = std::ranges::find(kCodes, t.dtype(), &std::pair<DType, std::string_view>::first);
  RL_CHECK(code != std::end(kCodes), "cannot write '", path, "': NumPy has no ", t.dtype());
  std::string header = str("{'descr': '", t.itemsize() == 1 ? '|' : '<', code->second,
                           "', 'fortran_order': False, 'shape': (");
  for (const int64_t n : t.sizes()) header += str(n, ",");
  header += "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  AtomicFile file(path, "cannot write");
  file.write({"\x93NUMPY\x01\x00", 8});
  file.write({reinterpret_cast<const char*>(&length), 2});
  file.write(header);
  if (t.nbytes()) file.write({static_cast<const char*>(t.data_ptr()), t.nbytes()});
  file.commit();
}

}  // namespace rushlight::io

#include "generation/text_stream.h"

#include <algorithm>

#include "generation/unicode.h"

namespace rushlight::generation {
namespace {

constexpr size_t kContext = 6;   // ids before what is new
constexpr size_t kLongest = 64;  // ids that may wait for the rest of a character
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, const std::vector<int64_t>& prompt,
                       const std::vector<std::string>& stop)
    : tokenizer_(tokenizer),
      stop_(stop),
      ids_(prompt),
      read_(ids_.size()),
      begin_(read_ - std::min(read_, kContext)) {
  while (begin_ > 0 && (in_bytes(begin_) || text(begin_, read_).empty())) --begin_;
}

std::string TextStream::text(size_t begin, size_t end) const {
  const auto at = [&](size_t i) { return ids_.begin() + static_cast<ptrdiff_t>(i); };
  return tokenizer_.decode({at(begin), at(end)});
}

// Whether the ids before `end` end in a row of bytes, which silent ones do not interrupt.
bool TextStream::in_bytes(size_t end) const {
  while (end > 0 && tokenizer_.is_silent(ids_[end - 1])) --end;
  return end > 0 && tokenizer_.is_byte(ids_[end - 1]);
}

std::string TextStream::add(int64_t token) {
  waiting_ = read_ == ids_.size() ? 0 : waiting_ + own(ids_.back()).size();
  ids_.push_back(token), before_ = size_;
  return released(known(false), false);
}
std::string TextStream::own(int64_t token) const {
  return tokenizer_.is_silent(token) ? std::string() : tokenizer_.bytes(token);
}
size_t TextStream::place() const {
  const std::string last = own(ids_.back());
  const bool whole = unicode::lossy(last) == last && last.size() <= size_ - before_;
  return whole && size_ > before_ ? size_ - last.size() : before_ + waiting_;
}
std::string TextStream::finish() { return released(known(true), true); }

std::string TextStream::known(bool last) {
  const std::string before = text(begin_, read_), all = text(begin_, ids_.size());
  // A character whose other bytes may be still to come.
  const bool open = all.ends_with(kReplacement) || in_bytes(ids_.size());
  if (!last && open && ids_.size() - read_ < kLongest) return {};
  // Decoders treat the beginning of a text apart, so what is decoded before new tokens must not be empty.
  if (!text(read_, ids_.size()).empty()) begin_ = read_;
  read_ = ids_.size();
  size_t same = static_cast<size_t>(std::ranges::mismatch(before, all).in2 - all.begin());
  while (same > 0 && same < all.size() && (static_cast<uint8_t>(all[same]) & 0xc0) == 0x80) --same;
  return all.substr(same);
}

std::string TextStream::released(std::string piece, bool last) {
  held_ += piece, size_ += piece.size();
  size_t found = std::string::npos;
  for (const std::string& stop : stop_) found = std::min(found, held_.find(stop));
  if (found != std::string::npos) {
    stopped_ = true;
    held_.resize(found);
    last = true;
  }
  size_t hold = 0;  // the longest end that begins a stop text
  for (const std::string& stop : stop_)
    for (size_t n = std::min(stop.size(), held_.size()); n > hold && !last; --n)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) hold = n;
  std::string out = held_.substr(0, held_.size() - hold);
  held_.erase(0, out.size());
  return out;
}

}  // namespace rushlight::generation

// Tokens one by one as text: what may still change, or may be the beginning of a stop text, is held back.
#pragma once
#include "rushlight/generation.h"

namespace rushlight::generation {

class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, const std::vector<int64_t>& prompt,
             const std::vector<std::string>& stop);
  // What is known more of the text.
  std::string add(int64_t token);
  std::string finish();
  bool stopped() const { return stopped_; }
  size_t size() const { return size_; }  // bytes known so far, those held back too
  // Where the text of the last token begins. Bytes that may be parts of a character count as they are until
  // the text with them is known.
  size_t place() const;

 private:
  std::string text(size_t begin, size_t end) const;
  bool in_bytes(size_t end) const;
  std::string own(int64_t token) const;
  std::string known(bool last);
  std::string released(std::string piece, bool last);

  const Tokenizer& tokenizer_;
  const std::vector<std::string>& stop_;
  std::vector<int64_t> ids_;  // the prompt's too, whose last ones decide about spaces
  size_t read_;               // ids whose text is known
  size_t begin_;              // where decoding begins, some ids before
  std::string held_;
  size_t size_ = 0, before_ = 0;  // before_: as it was before the last token
  size_t waiting_ = 0;            // bytes of tokens before the last one whose text was not known then
  bool stopped_ = false;
};

}  // namespace rushlight::generation

#include "core/error.h"

#include <charconv>

namespace rushlight::detail {

void MessagePart::append_to(std::string& out) const {
  const auto append_number = [&](auto number) {
    char buffer[32];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  };
  switch (kind_) {
    case Kind::Text:
      out.append(text_, size_);
      break;
    case Kind::Char:
      out += static_cast<char>(integer_);
      break;
    case Kind::Signed:
      append_number(integer_);
      break;
    case Kind::Unsigned:
      append_number(static_cast<uint64_t>(integer_));
      break;
    case Kind::Float:
      append_number(static_cast<float>(real_));
      break;
    case Kind::Double:
      append_number(real_);
      break;
    case Kind::Object:
      out += print_(object_);
      break;
  }
}

std::string join(MessageParts parts) {
  std::string out;
  for (const MessagePart& part : parts) part.append_to(out);
  return out;
}

void throw_error(ErrorKind kind, MessageParts parts) { throw Error(kind, join(parts)); }

void throw_internal(const char* condition, const char* file, int line, MessageParts parts) {
  const std::string message = join(parts);
  throw Error(ErrorKind::Internal, str("internal error, please report it: ", condition, " at ", file, ":",
                                       line, message.empty() ? "" : ": ", message));
}

}  // namespace rushlight::detail

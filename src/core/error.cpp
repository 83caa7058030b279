#include "core/error.h"

namespace rushlight::detail {

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void throw_internal(const char* condition, const char* file, int line, std::string message) {
  throw Error(ErrorKind::Internal, str("internal error, please report it: ", condition, " at ", file, ":",
                                       line, message.empty() ? "" : ": ", message));
}

}  // namespace rushlight::detail

#include "rushlight/warning.h"

#include "dispatch/op.h"

namespace rushlight {
namespace {

thread_local WarningHandler* handler = nullptr;
void (*show_without_handler)(const std::string&) = nullptr;

// The library's own warnings come through show_warning, which Python may have set to its own.
void show(const std::string& message) {
  if (handler)
    handler->process(Warning(message));
  else
    show_without_handler(message);
}

}  // namespace

void warn(const std::string& message) { show_warning(message); }

void WarningHandler::process(const Warning& warning) {
  (show_without_handler ? show_without_handler : show_warning)(warning.msg());
}

void WarningUtils::set_warning_handler(WarningHandler* new_handler) noexcept {
  [[maybe_unused]] static const bool first = [] {
    show_without_handler = show_warning;
    show_warning = show;
    return true;
  }();
  handler = new_handler;
}
WarningHandler* WarningUtils::get_warning_handler() noexcept { return handler; }

}  // namespace rushlight

// Warnings, and who hears of them.
#pragma once
#include <string>

namespace rushlight {

// Shows a warning: to this thread's handler if it has one, in Python through the module `warnings`, else on
// the standard error stream.
void warn(const std::string& message);

class Warning {
 public:
  explicit Warning(std::string message) : message_(std::move(message)) {}
  const std::string& msg() const { return message_; }

 private:
  std::string message_;
};

class WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  virtual void process(const Warning& warning);  // shows it as if there were no handler
};

namespace WarningUtils {
// This thread's; it must live until another one is set. Null: none.
void set_warning_handler(WarningHandler* handler) noexcept;
WarningHandler* get_warning_handler() noexcept;
}  // namespace WarningUtils

}  // namespace rushlight

// The log: a line of JSON each, written by a thread of its own, so that nobody waits for who reads it.
#pragma once
#include <string_view>

#include "serve/json_text.h"

namespace rushlight::serve::log {

// Begins with the time, the level and the event.
JsonObject line(std::string_view level, std::string_view event);
// Lines that nobody reads fast enough are dropped and counted.
void write(const JsonObject& line);
void start();
void stop();  // after the last line is written

inline void info(std::string_view event, std::string_view message) {
  write(line("info", event).add("message", message));
}
inline void error(std::string_view event, std::string_view message) {
  write(line("error", event).add("message", message));
}

}  // namespace rushlight::serve::log

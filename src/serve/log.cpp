#include "serve/log.h"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "core/host/clock.h"
#include "core/host/process.h"

namespace rushlight::serve::log {
namespace {

constexpr size_t kLongest = 10000;  // lines that wait

struct Writer {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  size_t dropped = 0;
  bool ending = false;
  std::thread thread;
};
Writer& writer() {
  static Writer w;
  return w;
}

void run() {
  Writer& w = writer();
  std::unique_lock lock(w.mutex);
  for (;;) {
    w.changed.wait(lock, [&] { return w.ending || !w.lines.empty(); });
    if (w.lines.empty()) return;
    std::string text;
    for (; !w.lines.empty() && text.size() < (64 << 10); w.lines.pop_front()) text += w.lines.front();
    if (w.dropped) {
      text += line("warning", "log").add("dropped_lines", w.dropped).done() + "\n";
      w.dropped = 0;
    }
    lock.unlock();
    host::write_to_stderr(text);  // a full disk or a closed pipe loses lines, never a request
    lock.lock();
  }
}

}  // namespace

JsonObject line(std::string_view level, std::string_view event) {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto part = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::tm utc = host::utc_time(seconds);
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (utc.tm_year + 1900) % 10000,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(part));
  JsonObject object;
  object.add("time", text).add("level", level).add("event", event);
  return object;
}

void write(const JsonObject& line) {
  Writer& w = writer();
  {
    std::lock_guard lock(w.mutex);
    if (w.lines.size() >= kLongest) {
      ++w.dropped;
      return;
    }
    w.lines.push_back(line.done() + "\n");
  }
  w.changed.notify_one();
}

void start() { writer().thread = std::thread(run); }

void stop() {
  Writer& w = writer();
  {
    std::lock_guard lock(w.mutex);
    w.ending = true;
  }
  w.changed.notify_one();
  // A reader of the log that stopped reading must not keep the server from ending: the process takes the
  // thread with it.
  for (int i = 0; i < 200; ++i) {
    {
      std::lock_guard lock(w.mutex);
      if (w.lines.empty()) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  w.thread.detach();
}

}  // namespace rushlight::serve::log

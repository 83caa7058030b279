// Requests and answers as the server's parts see them; only connection.cpp knows the library below.
#pragma once
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rushlight::serve {

using Clock = std::chrono::steady_clock;

struct Request {
  std::string method, path, query;                           // the path decoded, without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body, client;
  Clock::time_point arrived;

  // Empty if there is none; `name` in lower case.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return {};
  }
  // How much of the body is text to parse; bytes of tensors follow it (the binary extension of the Open
  // Inference Protocol). Nothing if the header says a length that the body does not have.
  std::optional<size_t> text_size() const {
    const std::string_view length = header("inference-header-content-length");
    if (length.empty()) return body.size();
    size_t n = 0;
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), n);
    if (error != std::errc() || end != length.data() + length.size() || n > body.size()) return {};
    return n;
  }
};

// Whether so much text and so many bytes behind it are read or written at once: on the thread that has them,
// since another would cost more than the work.
constexpr bool quick(size_t text, size_t bytes) { return text <= (16 << 10) && bytes <= (1 << 20); }

struct Reply {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};

// {"error":"..."}, and the header Retry-After where trying again makes sense.
Reply error_reply(int status, std::string_view what);

// One request and its answer. All functions may be called on any thread; what comes behind the answer, or
// after the client has gone, is dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;

  Request request;
  std::string model;               // which it is for, as metrics and the log say
  std::string_view route = "?";    // the pattern that its path matched
  std::vector<std::string> words;  // what stands for the pattern's {words}

  virtual void reply(Reply reply) = 0;
  // An answer in pieces: begin, any number of sends, end.
  virtual void begin(Reply head) = 0;
  virtual void send(std::string piece) = 0;
  virtual void end() = 0;

  // The client went away, the deadline passed, or the answer is given: nobody waits any more.
  virtual bool over() const = 0;
  // Called once when the client goes away or the deadline passes before the answer is complete; at once if
  // that has happened.
  virtual void when_lost(std::function<void()> callback) = 0;
  virtual Clock::time_point deadline() const = 0;
  virtual void shorten_deadline(Clock::time_point) = 0;
  // Bytes that this request takes until it is answered; false if there is no room for more.
  virtual bool take_memory(size_t bytes) = 0;
};
using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace rushlight::serve

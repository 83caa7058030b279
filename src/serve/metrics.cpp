#include "serve/metrics.h"

#include <algorithm>

#include "serve/json_text.h"

namespace rushlight::serve {

void Histogram::add(double value) {
  const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<size_t>(place)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}
uint64_t Histogram::count() const {
  uint64_t total = 0;
  for (const auto& c : counts_) total += c.load(std::memory_order_relaxed);
  return total;
}
double Histogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count());
  uint64_t seen = 0;
  for (size_t i = 0; i < kBounds; ++i)
    if (static_cast<double>(seen += counts_[i].load(std::memory_order_relaxed)) >= wanted) return bounds_[i];
  return bounds_.back();
}
void Histogram::print(std::string& out, std::string_view name, const std::string& labels) const {
  const std::string bucket = std::string(name) + "_bucket";
  const std::string more = labels.empty() ? "" : labels + ",";
  uint64_t seen = 0;
  for (size_t i = 0; i <= kBounds; ++i) {
    seen += counts_[i].load(std::memory_order_relaxed);
    std::string bound = "+Inf";
    if (i < kBounds) bound.clear(), append_number(bound, bounds_[i]);
    print_metric(out, bucket, more + label("le", bound), static_cast<double>(seen));
  }
  print_metric(out, std::string(name) + "_sum", labels, sum());
  print_metric(out, std::string(name) + "_count", labels, static_cast<double>(seen));
}

void print_metric(std::string& out, std::string_view name, const std::string& labels, double value) {
  out += name;
  if (!labels.empty()) out += '{', out += labels, out += '}';
  out += ' ';
  append_number(out, value);
  out += '\n';
}

std::string label(std::string_view key, std::string_view value) {
  std::string out(key);
  out += "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

void Counters::answered(std::string_view route, int status, double seconds) {
  std::lock_guard lock(mutex_);
  Route& r = routes_[route];
  ++r.statuses[status];
  r.latency.add(seconds);
}

void Counters::print(std::string& out) const {
  auto one = [&](std::string_view name, std::string_view type, double value) {
    out += "# TYPE ", out += name, out += ' ', out += type, out += '\n';
    print_metric(out, name, {}, value);
  };
  auto get = [](const auto& counter) { return static_cast<double>(counter.load(std::memory_order_relaxed)); };
  one("rushlight_connections", "gauge", get(connections));
  one("rushlight_connections_total", "counter", get(connections_total));
  one("rushlight_connections_refused_total", "counter", get(connections_refused));
  one("rushlight_requests_in_flight", "gauge", get(in_flight));
  one("rushlight_request_memory_bytes", "gauge", get(memory));
  one("rushlight_received_bytes_total", "counter", get(bytes_in));
  one("rushlight_sent_bytes_total", "counter", get(bytes_out));
  one("rushlight_requests_lost_total", "counter", get(lost));
  std::lock_guard lock(mutex_);
  out += "# TYPE rushlight_requests_total counter\n";
  for (const auto& [route, r] : routes_)
    for (const auto& [status, n] : r.statuses) {
      std::string code;
      append_number(code, status);
      print_metric(out, "rushlight_requests_total", label("route", route) + "," + label("status", code),
                   static_cast<double>(n));
    }
  out += "# TYPE rushlight_request_seconds histogram\n";
  for (const auto& [route, r] : routes_)
    r.latency.print(out, "rushlight_request_seconds", label("route", route));
}

}  // namespace rushlight::serve

#include "core/host/linux/cgroup.h"

#include <algorithm>
#include <charconv>

namespace rushlight::host {

static std::string_view trim(std::string_view s) {
  const char* blank = " \t\r\n";
  const size_t first = s.find_first_not_of(blank);
  return first == s.npos ? std::string_view{} : s.substr(first, s.find_last_not_of(blank) - first + 1);
}

std::optional<long long> parse_integer(std::string_view s) {
  s = trim(s);
  long long value = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_cfs(std::string_view quota, std::string_view period) {
  auto q = parse_integer(quota), p = parse_integer(period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return static_cast<double>(*q) / static_cast<double>(*p);
}

std::optional<double> parse_cpu_max(std::string_view text) {
  text = trim(text);
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  return parse_cfs(text.substr(0, blank), text.substr(blank + 1));
}

std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (names.find("," + std::string(controller) + ",") != names.npos)
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

}  // namespace rushlight::host

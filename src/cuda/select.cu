// The first elements of lines and single ones by rank: the digits of the wanted key are found from the
// highest on, each by a histogram of the elements that agree so far. What is sorted is sorted after that.
#include <algorithm>

#include "cuda/order.h"
#include "cuda/order_keys.h"
#include "cuda/team.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits, kSums = 32;
static_assert(kDigits == kTeamThreads);

RL_BOTH inline uint32_t count_one(uint32_t* counter) {
#ifdef __CUDA_ARCH__
  return atomicAdd(counter, 1u);
#else
  return (*counter)++;
#endif
}
RL_BOTH inline void keep_least(uint32_t* least, uint32_t value) {
#ifdef __CUDA_ARCH__
  atomicMin(least, value);
#else
  if (value < *least) *least = value;
#endif
}

// What a team finds. `left`: how many of the elements with this key are wanted, of `equal`.
struct alignas(8) Found {
  uint32_t place, left, equal, nans, taken;
  uint32_t counts[kDigits], sums[kSums];
};

// Elements of a line, or of one of its parts.
template <class W>
struct Elements {
  using K = typename KeyRule<W>::K;
  KeyRule<W> rule;
  const W* in;
  int64_t n, parts;
  RL_BOTH int64_t begin(int64_t team) const { return n * (team % parts) / parts; }
  RL_BOTH int64_t end(int64_t team) const { return n * (team % parts + 1) / parts; }
  RL_BOTH K key(int64_t team, int64_t i) const { return rule.key(in[team / parts * n + i]); }
  RL_BOTH uint32_t place(int64_t, int64_t i) const { return static_cast<uint32_t>(i); }
};
// What was taken of its parts before.
template <class Key>
struct Candidates {
  using K = Key;
  const K* keys;
  const uint32_t* places;
  int64_t n;
  RL_BOTH int64_t begin(int64_t) const { return 0; }
  RL_BOTH int64_t end(int64_t) const { return n; }
  RL_BOTH K key(int64_t team, int64_t i) const { return keys[team * n + i]; }
  RL_BOTH uint32_t place(int64_t team, int64_t i) const { return places[team * n + i]; }
};

// f(i, key) for the elements of one thread, of which several are on their way at once.
template <class E, class F>
RL_BOTH inline void for_each_key(const E& from, int64_t team, uint32_t thread, F&& f) {
  constexpr int kAhead = 4;
  const int64_t end = from.end(team);
  int64_t i = from.begin(team) + thread;
  for (; i + (kAhead - 1) * int64_t{kTeamThreads} < end; i += kAhead * kTeamThreads) {
    typename E::K keys[kAhead];
    for (int j = 0; j < kAhead; ++j) keys[j] = from.key(team, i + j * int64_t{kTeamThreads});
    for (int j = 0; j < kAhead; ++j) f(i + j * int64_t{kTeamThreads}, keys[j]);
  }
  for (; i < end; i += kTeamThreads) f(i, from.key(team, i));
}

// The number of which `wanted()` are not greater, among those of `bits` bits that each_number(thread, f)
// gives.
template <class N, class Each, class Wanted>
RL_DEVICE N find_digits(const Team& team, Found& found, int bits, Each&& each_number, Wanted&& wanted) {
  N number = 0;
  for (int shift = (bits - 1) / kDigitBits * kDigitBits; shift >= 0; shift -= kDigitBits) {
    team.each([&](uint32_t t) { found.counts[t] = 0; });
    team.each([&](uint32_t t) {
      each_number(t, [&](N x) {
        if (x >> shift >> kDigitBits == number >> shift >> kDigitBits)
          count_one(&found.counts[(x >> shift) % kDigits]);
      });
    });
    team.each([&](uint32_t t) {
      if (t >= kSums) return;
      uint32_t sum = 0;
      for (int i = 0; i < kDigits / kSums; ++i) sum += found.counts[t * (kDigits / kSums) + i];
      found.sums[t] = sum;
    });
    team.each([&](uint32_t t) {
      if (t != 0) return;
      uint32_t left = shift + kDigitBits >= bits ? wanted() : found.left, group = 0;
      while (group + 1 < kSums && left > found.sums[group]) left -= found.sums[group++];
      uint32_t digit = group * (kDigits / kSums);
      while (digit + 1 < kDigits && left > found.counts[digit]) left -= found.counts[digit++];
      found.left = left, found.equal = found.counts[digit], found.taken = digit;
    });
    number |= static_cast<N>(found.taken) << shift;
  }
  return number;
}

// The element that `rank` elements of its line come before.
template <class W>
struct SelectOne {
  Elements<W> from;
  LineSelect what;
  int64_t rank;
  W* values;
  int64_t* positions;
  RL_DEVICE void operator()(const Team& team) const {
    using K = typename KeyRule<W>::K;
    auto& found = *reinterpret_cast<Found*>(team.memory);
    team.each([&](uint32_t t) {
      if (t == 0) found.nans = 0, found.place = UINT32_MAX;
    });
    const bool kth = what == LineSelect::Kth;
    if (from.rule.floating && !kth)
      team.each([&](uint32_t t) {
        for_each_key(from, team.index, t, [&](int64_t, K key) {
          if (from.rule.is_nan(key)) count_one(&found.nans);
        });
      });
    const K key = find_digits<K>(
        team, found, from.rule.bits,
        [&](uint32_t t, auto&& f) { for_each_key(from, team.index, t, [&](int64_t, K x) { f(x); }); },
        [&] {
          const int64_t nans = found.nans, n = from.n;
          if (kth) return static_cast<uint32_t>(rank + 1);
          const bool last = nans == n || (nans > 0 && what == LineSelect::Median);  // which is NaN
          return static_cast<uint32_t>(last ? n : (n - nans - 1) / 2 + 1);
        });
    team.each([&](uint32_t t) {
      uint32_t first = UINT32_MAX;
      for_each_key(from, team.index, t, [&](int64_t i, K x) {
        if (x == key && i < first) first = static_cast<uint32_t>(i);
      });
      if (first != UINT32_MAX) keep_least(&found.place, first);
    });
    team.each([&](uint32_t t) {
      if (t != 0) return;
      positions[team.index] = found.place;
      values[team.index] = from.in[team.index * from.n + found.place];
    });
  }
};

// The k first elements: of equal keys those of the first places. In order as values and places, or in none as
// candidates.
template <class E, class W>
struct SelectFirst {
  using K = typename E::K;
  E from;
  KeyRule<W> rule;
  const W* in;
  int64_t n;  // of a line
  uint32_t k, room;
  int place_bits;
  K* keys;
  uint32_t* places;
  W* values;
  int64_t* order;

  RL_DEVICE void operator()(const Team& team) const {
    auto& found = *reinterpret_cast<Found*>(team.memory);
    auto* key = reinterpret_cast<K*>(team.memory + sizeof(Found));
    auto* place = reinterpret_cast<uint32_t*>(key + room);
    const K last = find_digits<K>(
        team, found, rule.bits,
        [&](uint32_t t, auto&& f) { for_each_key(from, team.index, t, [&](int64_t, K x) { f(x); }); },
        [&] { return k; });
    uint32_t last_place = UINT32_MAX;
    if (found.equal > found.left) {
      const uint32_t wanted = found.left;
      team.each([](uint32_t) {});
      last_place = find_digits<uint32_t>(
          team, found, place_bits,
          [&](uint32_t t, auto&& f) {
            for_each_key(from, team.index, t, [&](int64_t i, K x) {
              if (x == last) f(from.place(team.index, i));
            });
          },
          [&] { return wanted; });
    }
    team.each([](uint32_t) {});
    team.each([&](uint32_t t) {
      if (t == 0) found.taken = 0;
      for (uint32_t j = k + t; j < room; j += kTeamThreads) key[j] = ~K(0), place[j] = UINT32_MAX;
    });
    team.each([&](uint32_t t) {
      for_each_key(from, team.index, t, [&](int64_t i, K x) {
        if (x > last) return;
        const uint32_t at = from.place(team.index, i);
        if (x == last && at > last_place) return;
        const uint32_t slot = count_one(&found.taken);
        key[slot] = x, place[slot] = at;
      });
    });
    if (keys)
      return team.each([&](uint32_t t) {
        for (uint32_t j = t; j < k; j += kTeamThreads)
          keys[team.index * k + j] = key[j], places[team.index * k + j] = place[j];
      });
    sort(team, key, place);
    team.each([&](uint32_t t) {
      for (uint32_t j = t; j < k; j += kTeamThreads) {
        W word;
        values[team.index * k + j] = rule.word(key[j], &word) ? word : in[team.index * n + place[j]];
        order[team.index * k + j] = place[j];
      }
    });
  }

  // Batcher's bitonic sort of `room` pairs, a power of two.
  RL_DEVICE void sort(const Team& team, K* key, uint32_t* place) const {
    for (uint32_t size = 2; size <= room; size *= 2)
      for (uint32_t step = size / 2; step > 0; step /= 2)
        team.each([&](uint32_t t) {
          for (uint32_t j = t; j < room / 2; j += kTeamThreads) {
            const uint32_t a = j / step * 2 * step + j % step, b = a + step;
            const bool behind = key[b] < key[a] || (key[b] == key[a] && place[b] < place[a]);
            if (behind != ((a & size) == 0)) continue;
            const K moved = key[a];
            const uint32_t from_place = place[a];
            key[a] = key[b], place[a] = place[b];
            key[b] = moved, place[b] = from_place;
          }
        });
  }
};

// The beginnings of sorted lines.
template <class W>
struct CutLines {
  const W* sorted;
  const int64_t* places;
  W* values;
  int64_t* order;
  int64_t n, k;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t line = i / k, at = line * n + (i - line * k);
    values[i] = sorted[at], order[i] = places[at];
  }
};

// The first place of a sorted line whose key is not less.
template <class W>
RL_BOTH inline int64_t first_not_less(const KeyRule<W>& rule, const W* sorted, int64_t begin, int64_t end,
                                      typename KeyRule<W>::K key) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (rule.key(sorted[middle]) < key)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class W>
struct SelectSorted {
  KeyRule<W> rule;
  const W* sorted;
  const int64_t* places;
  int64_t n, rank;
  LineSelect what;
  W* values;
  int64_t* positions;
  RL_BOTH void operator()(int64_t line) const {
    const W* x = sorted + line * n;
    int64_t wanted = rank;
    if (what != LineSelect::Kth) {
      const int64_t numbers = rule.floating ? first_not_less(rule, x, 0, n, rule.mask) : n;
      const bool last = numbers == 0 || (numbers < n && what == LineSelect::Median);
      wanted = last ? n - 1 : (numbers - 1) / 2;
    }
    const int64_t first = first_not_less(rule, x, 0, wanted + 1, rule.key(x[wanted]));
    values[line] = x[first], positions[line] = places[line * n + first];
  }
};

struct Run {
  int64_t length, begin;
};
struct LongerRun {
  RL_BOTH Run operator()(const Run& a, const Run& b) const {
    return a.length > b.length || (a.length == b.length && a.begin < b.begin) ? a : b;
  }
};
// The longest run of each sorted line; of equal elements the last.
template <class W>
struct SelectMode {
  KeyRule<W> rule;
  const W* sorted;
  const int64_t* places;
  int64_t n;
  W* values;
  int64_t* positions;
  RL_DEVICE void operator()(const Block& block) const {
    const W* x = sorted + block.index * n;
    Run best{0, 0};
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const auto key = rule.key(x[i]);
      if (i > 0 && rule.key(x[i - 1]) == key) continue;
      int64_t inside = i, step = 1;
      while (inside + step < n && rule.key(x[inside + step]) == key) inside += step, step *= 2;
      int64_t outside = inside + step < n ? inside + step : n;
      while (outside - inside > 1) {
        const int64_t middle = inside + (outside - inside) / 2;
        (rule.key(x[middle]) == key ? inside : outside) = middle;
      }
      best = LongerRun{}(best, Run{outside - i, i});
    }
    best = block_reduce(block, best, LongerRun{});
    if (block.thread != 0) return;
    const int64_t at = best.begin + best.length - 1;
    values[block.index] = x[at], positions[block.index] = places[block.index * n + at];
  }
};

// All of some lines, sorted.
template <class W>
struct Sorted {
  Workspace values, order;
  Sorted(const DeviceLines& a, bool descending)
      : values(static_cast<size_t>(a.lines * a.n) * sizeof(W), a.device),
        order(static_cast<size_t>(a.lines * a.n) * sizeof(int64_t), a.device) {
    sort_in_order(a, descending, values.data(), static_cast<int64_t*>(order.data()));
  }
  const W* sorted() const { return static_cast<const W*>(values.data()); }
  const int64_t* places() const { return static_cast<const int64_t*>(order.data()); }
};

template <class K>
size_t team_bytes(uint32_t room) {
  return sizeof(Found) + room * (sizeof(K) + sizeof(uint32_t));
}

template <class W>
void top_of(const Launch& at, const DeviceLines& a, int64_t k, bool descending, W* values, int64_t* order) {
  using K = typename KeyRule<W>::K;
  // Teams keep up to kMost elements; beyond that, and where blocks sort lines as fast, lines are sorted.
  constexpr int64_t kShort = 256, kMost = 1024, kFew = 256, kBlockSorts = 4096, kLong = 16384, kTeams = 528,
                    kPart = 4096;
  if (k == a.n) return sort_in_order(a, descending, values, order);
  if (a.n <= kShort || k > kMost || (k > kFew && a.n <= kBlockSorts) || a.n > UINT32_MAX) {
    const Sorted<W> all(a, descending);
    return for_each_index(at, a.lines * k, CutLines<W>{all.sorted(), all.places(), values, order, a.n, k});
  }
  const KeyRule<W> rule(a.dtype, descending);
  const W* in = static_cast<const W*>(a.in);
  uint32_t room = 2;
  while (room < k) room *= 2;
  int place_bits = 1;
  while (a.n >> place_bits > 0) ++place_bits;
  int64_t parts = 1;
  if (a.lines < kTeams / 2 && a.n > kLong)
    parts = std::max<int64_t>(
        1, std::min((kTeams + a.lines - 1) / a.lines, a.n / std::max<int64_t>(kPart, 8 * k)));
  const auto count = static_cast<uint32_t>(k);
  const Elements<W> elements{rule, in, a.n, parts};
  if (parts == 1)
    return for_each_team(at, a.lines, team_bytes<K>(room),
                         SelectFirst<Elements<W>, W>{elements, rule, in, a.n, count, room, place_bits,
                                                     nullptr, nullptr, values, order});
  const int64_t taken = a.lines * parts * k;
  const Workspace keys(static_cast<size_t>(taken) * sizeof(K), a.device),
      places(static_cast<size_t>(taken) * sizeof(uint32_t), a.device);
  auto* key = static_cast<K*>(keys.data());
  auto* place = static_cast<uint32_t*>(places.data());
  for_each_team(at, a.lines * parts, team_bytes<K>(room),
                SelectFirst<Elements<W>, W>{elements, rule, in, a.n, count, room, place_bits, key, place,
                                            nullptr, nullptr});
  for_each_team(at, a.lines, team_bytes<K>(room),
                SelectFirst<Candidates<K>, W>{Candidates<K>{key, place, parts * k}, rule, in, a.n, count,
                                              room, place_bits, nullptr, nullptr, values, order});
}

template <class W>
void select_as(const Launch& at, const DeviceLines& a, LineSelect what, int64_t rank, W* values,
               int64_t* positions) {
  using K = typename KeyRule<W>::K;
  constexpr int64_t kShort = 128, kLong = 1 << 17, kFewLines = 64;
  const KeyRule<W> rule(a.dtype, false);
  if (what == LineSelect::Mode) {
    const Sorted<W> all(a, false);
    return for_each_block(at, a.lines,
                          SelectMode<W>{rule, all.sorted(), all.places(), a.n, values, positions});
  }
  if (a.n <= kShort || (a.n > kLong && (a.lines < kFewLines || a.n > UINT32_MAX))) {
    const Sorted<W> all(a, false);
    return for_each_index(
        at, a.lines, SelectSorted<W>{rule, all.sorted(), all.places(), a.n, rank, what, values, positions});
  }
  for_each_team(
      at, a.lines, team_bytes<K>(0),
      SelectOne<W>{Elements<W>{rule, static_cast<const W*>(a.in), a.n, 1}, what, rank, values, positions});
}

}  // namespace

void top(const DeviceLines& a, int64_t k, bool descending, void* values, int64_t* order) {
  visit_key_words(a.dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    top_of<W>({a.device, "topk"}, a, k, descending, static_cast<W*>(values), order);
  });
}

void select_of_lines(const DeviceLines& a, LineSelect what, int64_t k, void* values, int64_t* positions) {
  visit_key_words(a.dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    select_as<W>({a.device, "select"}, a, what, k, static_cast<W*>(values), positions);
  });
}

}  // namespace rushlight::cuda

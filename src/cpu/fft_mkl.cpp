#include "cpu/fft_mkl.h"

#ifdef RUSHLIGHT_WITH_MKL
#include <i_malloc.h>
#include <mkl_dfti.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <list>
#include <memory>
#include <new>

#include "core/fork_mutex.h"
#include "core/parallel.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kSerialPoints = 1 << 14;  // below, waking a thread costs more than it saves

// Where it has no memory for itself, MKL reports success and gives other numbers. So what it asks for is
// watched.
std::atomic<uint64_t> refused{0};
void* watched(void* memory, size_t bytes) {
  if (!memory && bytes) refused.fetch_add(1);
  return memory;
}
[[maybe_unused]] const bool watching = [] {
  i_malloc = [](size_t n) { return watched(std::malloc(n), n); };
  i_calloc = [](size_t n, size_t size) { return watched(std::calloc(n, size), n * size); };
  i_realloc = [](void* p, size_t n) { return watched(std::realloc(p, n), n); };
  return true;
}();

template <class F>
void run_mkl(F&& work) {
  const uint64_t before = refused.load();
  const MKL_LONG status = work();
  if (refused.load() != before) throw std::bad_alloc();
  if (status != 0 && !DftiErrorClass(status, DFTI_NO_ERROR))
    RL_FAIL("fft: MKL could not do the transform: ", std::string_view(DftiErrorMessage(status)));
}

struct Descriptor {
  DFTI_DESCRIPTOR_HANDLE handle = nullptr;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle) DftiFreeDescriptor(&handle);
  }
};
using DescriptorRef = std::shared_ptr<const Descriptor>;

// All that a descriptor depends on: one transform and the batch that MKL runs itself.
struct Key {
  FftKind kind;
  bool double_precision, threaded;
  double scale;
  std::vector<FftAxis> axes;
  FftAxis batch;
  friend bool operator==(const Key&, const Key&) = default;
  int64_t points() const {
    int64_t n = 1;
    for (const FftAxis& a : axes) n *= a.n;
    return n;
  }
};

DescriptorRef make_descriptor(const Key& key) {
  auto d = std::make_shared<Descriptor>();
  const auto precision = key.double_precision ? DFTI_DOUBLE : DFTI_SINGLE;
  const auto domain = key.kind == FftKind::Complex ? DFTI_COMPLEX : DFTI_REAL;
  std::vector<MKL_LONG> sizes, in = {0}, out = {0};
  for (const FftAxis& a : key.axes)
    sizes.push_back(a.n), in.push_back(a.in_stride), out.push_back(a.out_stride);
  const auto rank = static_cast<MKL_LONG>(sizes.size());
  run_mkl([&] {
    return rank == 1 ? DftiCreateDescriptor(&d->handle, precision, domain, rank, sizes[0])
                     : DftiCreateDescriptor(&d->handle, precision, domain, rank, sizes.data());
  });
  auto set = [&](DFTI_CONFIG_PARAM name, auto value) {
    run_mkl([&] { return DftiSetValue(d->handle, name, value); });
  };
  set(DFTI_PLACEMENT, DFTI_NOT_INPLACE);
  set(DFTI_INPUT_STRIDES, in.data());
  set(DFTI_OUTPUT_STRIDES, out.data());
  if (domain == DFTI_REAL) set(DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX);
  if (key.batch.n > 1) {
    set(DFTI_NUMBER_OF_TRANSFORMS, static_cast<MKL_LONG>(key.batch.n));
    set(DFTI_INPUT_DISTANCE, static_cast<MKL_LONG>(key.batch.in_stride));
    set(DFTI_OUTPUT_DISTANCE, static_cast<MKL_LONG>(key.batch.out_stride));
  }
  set(DFTI_FORWARD_SCALE, key.scale);
  set(DFTI_BACKWARD_SCALE, key.scale);
  if (!key.threaded) set(DFTI_THREAD_LIMIT, static_cast<MKL_LONG>(1));
  run_mkl([&] { return DftiCommitDescriptor(d->handle); });
  return d;
}

// The descriptors used last: making one takes longer than many a transform.
class Cache {
 public:
  DescriptorRef get(const Key& key) {
    if (DescriptorRef found = find(key)) return found;
    DescriptorRef made = make_descriptor(key);
    if (key.points() > kMostPoints) return made;
    std::lock_guard lock(mutex_);
    entries_.push_front({key, made});
    points_ += key.points();
    while (entries_.size() > kMostEntries || points_ > kMostPoints) {
      points_ -= entries_.back().key.points();
      entries_.pop_back();
    }
    return made;
  }

 private:
  static constexpr size_t kMostEntries = 64;
  static constexpr int64_t kMostPoints = int64_t{1} << 22;  // MKL's tables take some 16 bytes a point
  struct Entry {
    Key key;
    DescriptorRef descriptor;
  };
  DescriptorRef find(const Key& key) {
    std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if (it->key == key) {
        entries_.splice(entries_.begin(), entries_, it);
        return entries_.front().descriptor;
      }
    return nullptr;
  }
  ForkMutex mutex_;
  std::list<Entry> entries_;
  int64_t points_ = 0;
};

Cache& cache() {
  static Cache* c = new Cache;  // MKL's own state may be gone before ours at exit
  return *c;
}

// The batch axis that MKL gets: neighbours in memory if there are enough of them, else the longest.
size_t pick_batch(const std::vector<FftAxis>& batch) {
  const auto nearest = std::ranges::min_element(batch, {}, &FftAxis::out_stride);
  const auto longest = std::ranges::max_element(batch, {}, &FftAxis::n);
  return static_cast<size_t>((nearest->n >= 8 ? nearest : longest) - batch.begin());
}

// How many transforms of the batch are one task: MKL itself gains nothing from a second thread there.
// Neighbours stay together, as they share lines of the cache.
int64_t piece_of(const FftAxis& batch) {
  constexpr int64_t kTasksPerThread = 4, kNeighbours = 8;
  const int64_t least = std::min(batch.in_stride, batch.out_stride) < kNeighbours ? kNeighbours : 1;
  const int64_t tasks = kTasksPerThread * get_num_threads();
  return std::min(batch.n, std::max(least, (batch.n + tasks - 1) / tasks));
}

}  // namespace

void fft_mkl(const Fft& f, const void* in, void* out) {
  Key key{f.kind, f.double_precision, false, f.scale, f.axes, {1, 0, 0}};
  std::vector<FftAxis> rest = f.batch;
  if (!rest.empty()) {
    const auto picked = rest.begin() + static_cast<ptrdiff_t>(pick_batch(rest));
    key.batch = *picked;
    rest.erase(picked);
  }
  Dims sizes, in_strides, out_strides;
  int64_t calls = 1;
  for (const FftAxis& a : rest) {
    sizes.push_back(a.n), in_strides.push_back(a.in_stride), out_strides.push_back(a.out_stride);
    calls *= a.n;
  }
  sizes.push_back(1), in_strides.push_back(0), out_strides.push_back(0);
  const int64_t points = key.points() * key.batch.n;
  const bool shared = points >= kSerialPoints && get_num_threads() > 1 && !in_parallel_region();
  const int64_t real_size = f.double_precision ? 8 : 4;
  const int64_t in_size = f.kind == FftKind::RealToComplex ? real_size : 2 * real_size;
  const int64_t out_size = f.kind == FftKind::ComplexToReal ? real_size : 2 * real_size;
  const bool forward = f.kind == FftKind::RealToComplex || (f.kind == FftKind::Complex && f.forward);
  auto run = [&](const DescriptorRef& descriptor, int64_t from, int64_t to) {
    char* source = const_cast<char*>(static_cast<const char*>(in)) + from * in_size;
    char* target = static_cast<char*>(out) + to * out_size;
    run_mkl([&] {
      return forward ? DftiComputeForward(descriptor->handle, source, target)
                     : DftiComputeBackward(descriptor->handle, source, target);
    });
  };
  if (calls == 1 && shared && key.batch.n >= get_num_threads()) {
    const FftAxis whole = key.batch;
    const int64_t piece = piece_of(whole);
    const auto descriptor_of = [&](int64_t n) { return key.batch.n = n, cache().get(key); };
    const DescriptorRef descriptor = descriptor_of(piece), last = descriptor_of((whole.n - 1) % piece + 1);
    parallel_for(0, (whole.n + piece - 1) / piece, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        run((i + 1) * piece <= whole.n ? descriptor : last, i * piece * whole.in_stride,
            i * piece * whole.out_stride);
    });
    return;
  }
  key.threaded = calls == 1 && shared;
  const DescriptorRef descriptor = cache().get(key);
  if (calls == 1) {
    if (key.threaded)
      run_in_pool([&] { run(descriptor, 0, 0); });
    else
      run(descriptor, 0, 0);
    return;
  }
  parallel_for(0, calls, std::max<int64_t>(1, kSerialPoints / points), [&](int64_t begin, int64_t end) {
    for_each_row<2>(sizes, {IntList(in_strides), IntList(out_strides)}, begin, end,
                    [&](auto& offset) { run(descriptor, offset[0], offset[1]); });
  });
}

}  // namespace rushlight::cpu
#endif

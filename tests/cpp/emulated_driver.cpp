#include "emulated_driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/device_backend.h"

namespace rushlight::emulated {
namespace {

constexpr size_t kPage = 4096, kStep = size_t{2} << 20;
constexpr int kAssertTriggered = 710, kNotPermitted = 900, kInvalidHandle = 400;
constexpr size_t kHandleBytes = 64;

// Pages that nobody may touch, except while work runs.
class Memory {
 public:
  void* allocate(size_t nbytes, int device) {
    const size_t size = (nbytes + kPage - 1) / kPage * kPage;
    if (size > limit_ - used_[device] || refusals_ > 0) {
      if (refusals_ > 0) --refusals_;
      return nullptr;
    }
    void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return nullptr;
    note(address, size, device);
    return address;
  }
  void release(void* address) {
    const auto found = blocks_.find(address);
    used_[found->second.device] -= found->second.size;
    munmap(address, found->second.size);
    blocks_.erase(found);
  }
  bool map(void* address, size_t size, int device) {
    if (size > limit_ - used_[device] || refusals_ > 0) {
      if (refusals_ > 0) --refusals_;
      return false;
    }
    note(address, size, device);
    return true;
  }
  void unmap(void* address, size_t size) {
    mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    auto* end = static_cast<char*>(address) + size;
    // A range is mapped from its beginning and unmapped from its end, perhaps in other steps.
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      auto* start = static_cast<char*>(it->first);
      if (start < address || start >= end) {
        const size_t past = start < address && start + it->second.size > address
                                ? static_cast<size_t>(start + it->second.size - static_cast<char*>(address))
                                : 0;
        it->second.size -= past, used_[it->second.device] -= past;
        ++it;
        continue;
      }
      used_[it->second.device] -= it->second.size;
      it = blocks_.erase(it);
    }
  }
  int device_of(const void* address) const {
    auto after = blocks_.upper_bound(const_cast<void*>(address));
    if (after == blocks_.begin()) return -1;
    const auto& [start, block] = *--after;
    return address < static_cast<const char*>(start) + block.size ? block.device : -1;
  }
  void open(bool wanted) {
    for (const auto& [address, block] : blocks_)
      mprotect(address, block.size, wanted ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  std::pair<size_t, size_t> info(int device) const { return {limit_ - used_[device], limit_}; }

  size_t limit_ = size_t{16} << 30;
  int refusals_ = 0, calls_ = 0;

 private:
  struct Block {
    size_t size;
    int device;
  };
  void note(void* address, size_t size, int device) {
    blocks_[address] = {size, device};
    used_[device] += size;
    ++calls_;
  }
  std::map<void*, Block> blocks_;
  size_t used_[kDevices] = {};
};

struct Queue;
struct Recording {
  std::vector<std::function<void()>> work;
};
struct Mark {
  struct Counts {
    std::atomic<uint64_t> serial{0};  // of the last time it was recorded
    std::atomic<uint64_t> passed{0};  // serial of the last time that was reached
  };
  bool timing = false;
  Counts own, *counts = &own;  // those of a shared event lie in a file that other processes map
  std::string file;
  bool creator = false;
  Queue* queue = nullptr;  // null: another process records it
  Recording* graph = nullptr;
  std::chrono::steady_clock::time_point time;
};
struct Item {
  std::function<void()> run;
  std::function<bool()> ready;  // or null: at once
};
struct Queue {
  int device = 0;
  std::deque<Item> work;
  Recording* capture = nullptr;
};

class Driver final : public DeviceDriver {
 public:
  int device_count() override { return kDevices; }
  int current_device() override { return current_; }
  void set_device(int device) override { current_ = device; }
  DeviceProperties properties(int) override {
    DeviceProperties p;
    p.name = "Emulated device", p.uuid = "00000000-0000-0000-0000-000000000000";
    p.major = 9, p.minor = 0;
    p.total_memory = memory_.limit_;
    p.multi_processor_count = 4, p.max_threads_per_block = 1024, p.max_threads_per_multi_processor = 2048;
    return p;
  }
  std::string architectures() override { return "sm_90"; }
  bool can_access_peer(int device, int peer) override { return device != peer; }

  void* allocate(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    check_alive();
    return memory_.allocate(bytes, current_);
  }
  void release(void* address, size_t) noexcept override {
    const std::lock_guard lock(mutex_);
    memory_.release(address);
  }
  std::pair<size_t, size_t> memory_info() override {
    const std::lock_guard lock(mutex_);
    return memory_.info(current_);
  }
  void* allocate_pinned(size_t bytes) override {
    return std::aligned_alloc(kPage, (bytes + kPage) / kPage * kPage);
  }
  void release_pinned(void* address, size_t) noexcept override { std::free(address); }
  int device_of(const void* address) override {
    const std::lock_guard lock(mutex_);
    return memory_.device_of(address);
  }

  size_t mapping_step() override { return kStep; }
  void* reserve_addresses(size_t bytes) override {
    void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? nullptr : address;
  }
  void release_addresses(void* address, size_t bytes) noexcept override { munmap(address, bytes); }
  bool map_memory(void* address, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return memory_.map(address, bytes, current_);
  }
  void unmap_memory(void* address, size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    memory_.unmap(address, bytes);
  }

  std::pair<int, int> priority_range() override { return {0, -5}; }
  Stream make_stream(int) override {
    const std::lock_guard lock(mutex_);
    queues_.push_back(std::make_unique<Queue>());
    queues_.back()->device = current_;
    return queues_.back().get();
  }
  bool query_stream(Stream stream) override {
    const std::lock_guard lock(mutex_);
    check_alive();
    Queue& q = queue(stream);
    check_not_capturing(q);
    const bool done = q.work.empty();
    if (!done) step(q);  // who asks often enough gets there
    return done;
  }
  void synchronize_stream(Stream stream) override {
    const std::lock_guard lock(mutex_);
    check_not_capturing(queue(stream));
    drain(queue(stream));
    check_alive();
  }
  void synchronize_device() override {
    const std::lock_guard lock(mutex_);
    // The newest streams first: an order that nobody may rely on.
    for (auto q = queues_.rbegin(); q != queues_.rend(); ++q)
      if ((*q)->device == current_) drain(**q);
    check_alive();
  }
  void call_host(Stream stream, std::function<void()> f) override { add(stream, std::move(f)); }

  Event make_event(bool timing, bool) override {
    auto* mark = new Mark;
    mark->timing = timing;
    return mark;
  }
  Event make_shared_event(bool) override {
    static std::atomic<int> made{0};
    return map_mark(str("/tmp/emulated-event-", getpid(), "-", made++), O_RDWR | O_CREAT | O_EXCL);
  }
  std::string event_handle(Event event) override {
    const std::string& file = static_cast<Mark*>(event)->file;
    if (file.empty()) throw DeviceError("CUDA error: invalid resource handle", kInvalidHandle);
    std::string handle = file;
    handle.resize(kHandleBytes);
    return handle;
  }
  Event open_event(const std::string& handle) override { return map_mark(handle.c_str(), O_RDWR); }
  void release_event(Event event) noexcept override {  // queued work may still refer to the mark
    const auto* mark = static_cast<Mark*>(event);
    if (mark->creator) unlink(mark->file.c_str());
  }
  void record_event(Event event, Stream stream) override {
    const std::lock_guard lock(mutex_);
    check_alive();
    auto* mark = static_cast<Mark*>(event);
    Queue& q = queue(stream);
    mark->queue = &q, mark->graph = q.capture;
    const uint64_t serial = ++mark->counts->serial;
    if (q.capture) return;
    q.work.push_back(
        {[mark, serial] { mark->counts->passed = serial, mark->time = std::chrono::steady_clock::now(); },
         nullptr});
  }
  void wait_event(Stream stream, Event event) override {
    const std::lock_guard lock(mutex_);
    check_alive();
    auto* mark = static_cast<Mark*>(event);
    Queue& q = queue(stream);
    if (mark->graph) q.capture = mark->graph;  // joins the capture
    const uint64_t serial = mark->counts->serial;
    if (serial == 0 || q.capture) return;
    q.work.push_back(
        {[] {}, [this, mark, serial, source = mark->queue] { return advance(mark, serial, source); }});
  }
  bool query_event(Event event) override {
    const std::lock_guard lock(mutex_);
    check_alive();
    auto* mark = static_cast<Mark*>(event);
    const bool done = mark->counts->passed >= mark->counts->serial;
    if (!done && mark->queue) step(*mark->queue);
    return done;
  }
  void synchronize_event(Event event) override {
    const std::lock_guard lock(mutex_);
    auto* mark = static_cast<Mark*>(event);
    const uint64_t serial = mark->counts->serial;
    while (serial != 0 && !advance(mark, serial, mark->queue)) pause();
    check_alive();
  }
  float elapsed_milliseconds(Event from, Event to) override {
    const std::lock_guard lock(mutex_);
    auto *a = static_cast<Mark*>(from), *b = static_cast<Mark*>(to);
    if (a->counts->passed < a->counts->serial || b->counts->passed < b->counts->serial)
      throw DeviceError("CUDA error: device not ready", 600);
    return std::chrono::duration<float, std::milli>(b->time - a->time).count();
  }

  void copy(void* to, const void* from, size_t bytes, Stream stream) override {
    add(stream, [=] { std::memmove(to, from, bytes); }, "copy", DeviceActivity::Kind::Copy, bytes);
  }

  bool start_observing() override {
    const std::lock_guard lock(mutex_);
    observing_ = true;
    return true;
  }
  std::vector<DeviceActivity> stop_observing() override {
    const std::lock_guard lock(mutex_);
    for (auto& q : queues_) drain(*q);
    observing_ = false;
    return std::exchange(activities_, {});
  }
  void push_cause(uint64_t id) override { causes_.push_back(id); }
  void pop_cause() override { causes_.pop_back(); }

  void begin_capture(Stream stream, int) override {
    const std::lock_guard lock(mutex_);
    Queue& q = queue(stream);
    if (!stream) throw DeviceError("CUDA error: operation not permitted", kNotPermitted);
    check_not_capturing(q);
    q.capture = new Recording;
  }
  Graph end_capture(Stream stream) override {
    const std::lock_guard lock(mutex_);
    Recording* graph = queue(stream).capture;
    for (auto& q : queues_)
      if (q->capture == graph) q->capture = nullptr;
    return graph;
  }
  bool is_capturing(Stream stream) override {
    const std::lock_guard lock(mutex_);
    return queue(stream).capture != nullptr;
  }
  void launch_graph(Graph graph, Stream stream) override {
    for (const auto& work : static_cast<Recording*>(graph)->work) add(stream, work);
  }
  void release_graph(Graph graph) noexcept override { delete static_cast<Recording*>(graph); }

  void add(Stream stream, std::function<void()> work, std::string_view what = "host",
           DeviceActivity::Kind kind = DeviceActivity::Kind::Kernel, size_t bytes = 0) {
    const std::lock_guard lock(mutex_);
    check_alive();
    Queue& q = queue(stream);
    if (observing_) work = observed(q, std::move(work), what, kind, bytes);
    if (q.capture)
      q.capture->work.push_back(std::move(work));
    else
      q.work.push_back({std::move(work), nullptr});
  }
  void add_when(Stream stream, std::function<bool()> ready, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    check_alive();
    queue(stream).work.push_back({std::move(work), std::move(ready)});
  }
  Memory& memory() { return memory_; }
  void fail_next() { fails_next_ = true; }

 private:
  Queue& queue(Stream stream) {
    if (stream) return *static_cast<Queue*>(stream);
    return *queues_[static_cast<size_t>(current_)];
  }
  static void check_not_capturing(const Queue& q) {
    if (q.capture)
      throw DeviceError("CUDA error: operation not permitted when stream is capturing", kNotPermitted);
  }
  void check_alive() const {
    if (!failure_.empty()) throw DeviceError(str("CUDA error: ", failure_), kAssertTriggered);
  }
  // Runs the first item of a stream; false when there is none, or it has to wait.
  bool step(Queue& q) {
    if (q.work.empty()) return false;
    const std::function<bool()> ready = q.work.front().ready;
    if (failure_.empty() && ready && !ready()) return false;
    run_one(q);
    return true;
  }
  void run_one(Queue& q) {
    const std::function<void()> work = std::move(q.work.front().run);
    q.work.pop_front();
    if (!failure_.empty()) return;
    if (running_++ == 0) memory_.open(true);
    try {
      if (std::exchange(fails_next_, false)) throw std::runtime_error("device-side assert triggered");
      work();
    } catch (const std::exception& e) {
      failure_ = e.what();
    }
    if (--running_ == 0) memory_.open(false);
  }
  void drain(Queue& q) {
    while (!q.work.empty())
      if (!step(q)) pause();
  }
  // Lets the other streams and threads go on, while work waits for what is not its own stream's.
  void pause() {
    for (const auto& q : queues_) step(*q);
    mutex_.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    mutex_.lock();
  }
  // Runs a stream until it has passed a mark; false when it has to wait before that.
  bool advance(Mark* mark, uint64_t serial, Queue* source) {
    if (!source) return mark->counts->passed >= serial;
    while (mark->counts->passed < serial && !source->work.empty())
      if (!step(*source)) return false;
    return true;
  }

  static Event map_mark(const std::string& file, int flags) {
    const int opened = open(file.c_str(), flags, 0600);
    if (opened < 0 || ftruncate(opened, sizeof(Mark::Counts)) != 0)
      throw DeviceError("CUDA error: invalid resource handle", kInvalidHandle);
    void* counts = mmap(nullptr, sizeof(Mark::Counts), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    close(opened);
    auto* mark = new Mark;
    mark->file = file, mark->creator = (flags & O_CREAT) != 0;
    mark->counts = static_cast<Mark::Counts*>(counts);
    return mark;
  }

  // Work that notes when it ran, and which operator asked for it.
  std::function<void()> observed(const Queue& q, std::function<void()> work, std::string_view what,
                                 DeviceActivity::Kind kind, size_t bytes) {
    DeviceActivity activity;
    activity.kind = kind, activity.name = what, activity.device = q.device;
    activity.bytes = static_cast<int64_t>(bytes);
    for (size_t i = 0; i < queues_.size(); ++i)
      if (queues_[i].get() == &q) activity.stream = i;
    activity.cause = causes_.empty() ? 0 : causes_.back();
    return [this, activity, work = std::move(work)]() mutable {
      auto now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
      activity.start = std::chrono::duration_cast<std::chrono::nanoseconds>(now()).count();
      work();
      activity.end = std::chrono::duration_cast<std::chrono::nanoseconds>(now()).count();
      activities_.push_back(activity);
    };
  }

  static std::vector<std::unique_ptr<Queue>> default_queues() {
    std::vector<std::unique_ptr<Queue>> queues;
    for (int i = 0; i < kDevices; ++i) queues.push_back(std::make_unique<Queue>()), queues.back()->device = i;
    return queues;
  }

  static thread_local int current_;
  static thread_local std::vector<uint64_t> causes_;
  bool observing_ = false;
  std::vector<DeviceActivity> activities_;
  std::mutex mutex_;
  Memory memory_;
  std::vector<std::unique_ptr<Queue>> queues_ = default_queues();
  std::string failure_;
  bool fails_next_ = false;
  int running_ = 0;
};
thread_local int Driver::current_ = 0;
thread_local std::vector<uint64_t> Driver::causes_;

Driver& the_driver() {
  static auto* one = new Driver;  // outlives the tensors of the interpreter's last breath
  return *one;
}

}  // namespace

DeviceDriver& driver() { return the_driver(); }

void enqueue(int device, std::string_view what, std::function<void()> work) {
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(driver(), device);
  try {
    the_driver().add(backend.stream(backend.current_stream(device)).handle, std::move(work), what);
  } catch (const DeviceError& e) {
    if (e.code != kAssertTriggered) throw;
    backend.launched(device, what);  // as cuda/driver.cpp reports what a launch finds
    throw DeviceError(backend.explain(device, e.what()), e.code);
  }
  backend.launched(device, what);
}

void enqueue_when(DeviceDriver::Stream stream, std::function<bool()> ready, std::function<void()> work) {
  the_driver().add_when(stream, std::move(ready), std::move(work));
}

}  // namespace rushlight::emulated

// What tests ask through ctypes.
extern "C" {
void emulated_set_memory(size_t bytes) { rushlight::emulated::the_driver().memory().limit_ = bytes; }
void emulated_refuse_allocations(int count) { rushlight::emulated::the_driver().memory().refusals_ = count; }
// An allocator that others wrote: it counts, and waits for what still uses the memory.
int emulated_given = 0, emulated_taken = 0;
void* emulated_give(ssize_t bytes, int, void*) {
  if (bytes > (1 << 28)) return nullptr;
  ++emulated_given;
  return std::malloc(static_cast<size_t>(bytes));
}
void emulated_take(void* address, ssize_t, int, void* stream) {
  rushlight::emulated::the_driver().synchronize_stream(stream);
  ++emulated_taken;
  std::free(address);
}
int emulated_allocations() { return rushlight::emulated::the_driver().memory().calls_; }
void emulated_fail_next_kernel() { rushlight::emulated::the_driver().fail_next(); }
}

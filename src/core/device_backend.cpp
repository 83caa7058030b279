#include "core/device_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/foreign_allocator.h"

namespace rushlight {
namespace {

constexpr StreamId kHost = -1;  // whose order pinned memory follows: no stream's

// What a thread has selected. Behind a pointer: the library's thread-local storage is scarce, being static.
struct Selection {
  std::array<StreamId, DeviceBackend::kMaxDevices> streams{};  // 0: the device's default one
  std::array<PoolId, DeviceBackend::kMaxDevices> pools{};
};
thread_local std::unique_ptr<Selection> selected;

Selection& selection() {
  if (!selected) selected = std::make_unique<Selection>();
  return *selected;
}

// The private pool that this thread allocates from.
PoolId selected_pool(int device) { return selected ? selected->pools[static_cast<size_t>(device)] : 0; }

bool is_blocking() {
  static const bool blocking = [] {
    for (const char* name : {"RUSHLIGHT_CUDA_BLOCKING", "CUDA_LAUNCH_BLOCKING"})
      if (const char* given = std::getenv(name); given && std::string_view(given) == "1") return true;
    return false;
  }();
  return blocking;
}

}  // namespace

thread_local const std::string_view* device_operator = nullptr;

DeviceScope::~DeviceScope() {
  try {
    if (driver_.current_device() != previous_) driver_.set_device(previous_);
  } catch (const Error&) {  // the device is lost: the next call says so
  }
}

// --- the blocks of one device

void* DeviceMemory::allocate_segment(size_t bytes) {
  if (device_ == kPinned) return backend_.driver().allocate_pinned(bytes);
  const DeviceScope scope(backend_.driver(), device_);
  if (const PoolId pool = selected_pool(device_); foreign::gives_pool(pool))
    return foreign::allocate(bytes, device_, backend_.stream(backend_.current_stream(device_)).handle, pool);
  return backend_.driver().allocate(bytes);
}
void DeviceMemory::free_segment(void* address, size_t bytes) noexcept {
  if (device_ == kPinned) return backend_.driver().release_pinned(address, bytes);
  const DeviceScope scope(backend_.driver(), device_);
  if (!foreign::release(address)) backend_.driver().release(address, bytes);
}
size_t DeviceMemory::mapping_step() {
  return device_ == kPinned || foreign::gives_pool(selected_pool(device_)) ? 0
                                                                           : backend_.driver().mapping_step();
}
void* DeviceMemory::reserve_addresses(size_t* bytes) {
  const DeviceScope scope(backend_.driver(), device_);
  const size_t step = backend_.driver().mapping_step();
  *bytes = (backend_.driver().memory_info().second / 8 * 9 + step - 1) / step * step;  // all of it, and holes
  return backend_.driver().reserve_addresses(*bytes);
}
void DeviceMemory::release_addresses(void* address, size_t bytes) noexcept {
  backend_.driver().release_addresses(address, bytes);
}
bool DeviceMemory::map_memory(void* address, size_t bytes) {
  const DeviceScope scope(backend_.driver(), device_);
  return backend_.driver().map_memory(address, bytes);
}
void DeviceMemory::unmap_memory(void* address, size_t bytes) noexcept {
  const DeviceScope scope(backend_.driver(), device_);
  backend_.driver().unmap_memory(address, bytes);
}
BlockSource::Event DeviceMemory::record_event(StreamId id) {
  const StreamInfo stream = backend_.stream(id);
  const DeviceScope scope(backend_.driver(), stream.device);
  const DeviceDriver::Event event = backend_.driver().make_event(false, false);
  backend_.driver().record_event(event, stream.handle);
  return reinterpret_cast<Event>(event);
}
bool DeviceMemory::query_event(Event event) {
  return backend_.driver().query_event(reinterpret_cast<DeviceDriver::Event>(event));
}
void DeviceMemory::wait_event(Event event) {
  backend_.driver().synchronize_event(reinterpret_cast<DeviceDriver::Event>(event));
}
void DeviceMemory::release_event(Event event) noexcept {
  backend_.driver().release_event(reinterpret_cast<DeviceDriver::Event>(event));
}
std::string DeviceMemory::name() const { return device_ == kPinned ? "Pinned memory: the host is" : "CUDA"; }
std::string DeviceMemory::describe() {
  if (device_ == kPinned) return {};
  const DeviceScope scope(backend_.driver(), device_);
  const auto [free, total] = backend_.driver().memory_info();
  return str("GPU ", device_, " has a total capacity of ", format_bytes(total), " of which ",
             format_bytes(free), " is free");
}

// --- devices and their memory

DeviceBackend::DeviceBackend(DeviceDriver& driver)
    : driver_(driver),
      count_(std::min(driver.device_count(), kMaxDevices)),
      fractions_(static_cast<size_t>(count_), 1.0),
      pinned_source_(*this, DeviceMemory::kPinned),
      pinned_(pinned_source_),
      properties_(static_cast<size_t>(count_)) {
  const AllocatorConfig config = allocator_config_from_environment();
  for (int i = 0; i < count_; ++i) {
    sources_.push_back(std::make_unique<DeviceMemory>(*this, i));
    pools_.push_back(std::make_unique<CachingAllocator>(*sources_.back(), config));
    streams_.push_back({i, 0, nullptr});
  }
}

const DeviceProperties& DeviceBackend::properties(int device) {
  const std::lock_guard lock(mutex_);
  auto& known = properties_[static_cast<size_t>(device)];
  if (!known) known = std::make_unique<DeviceProperties>(driver_.properties(device));
  return *known;
}

void* DeviceBackend::allocate(size_t nbytes, int device) {
  if (foreign::gives_all()) {
    if (nbytes == 0) return nullptr;
    const DeviceScope scope(driver_, device);
    void* address = foreign::allocate(nbytes, device, stream(current_stream(device)).handle);
    if (!address)
      throw OutOfMemory(str("CUDA out of memory: the allocator given to change_current_allocator has no ",
                            format_bytes(nbytes)));
    return address;
  }
  return memory(device).allocate(nbytes, current_stream(device),
                                 device_operator ? *device_operator : std::string_view(),
                                 selected_pool(device));
}

void DeviceBackend::deallocate(void* address, size_t, int device) noexcept {
  if (in_bad_fork()) return;  // the parent's
  try {
    if (foreign::gives_all() && foreign::release(address)) return;
    memory(device).deallocate(address);
  } catch (const DeviceError&) {  // the device is lost, and its memory with it
  }
}

void DeviceBackend::record_stream(void* address, int device, StreamId stream) {
  if (foreign::gives_all()) return foreign::record_stream(address, stream);
  if (memory(device).owns(address)) memory(device).record_stream(address, stream);
}

void DeviceBackend::set_memory_fraction(int device, double fraction) {
  const DeviceScope scope(driver_, device);
  const auto total = static_cast<double>(driver_.memory_info().second);
  fractions_[static_cast<size_t>(device)] = fraction;
  memory(device).set_memory_limit(fraction < 1 ? static_cast<size_t>(total * fraction) : SIZE_MAX);
}

void* DeviceBackend::allocate_pinned(size_t nbytes) { return pinned_.allocate(nbytes, kHost); }

void DeviceBackend::deallocate_pinned(void* address) noexcept {
  if (in_bad_fork()) return;
  try {
    pinned_.deallocate(address);
  } catch (const DeviceError&) {
  }
}

void DeviceBackend::begin_private_pool(int device, PoolId pool) {
  memory(device).retain_pool(pool);
  selection().pools[static_cast<size_t>(device)] = pool;
}
void DeviceBackend::end_private_pool(int device) { selection().pools[static_cast<size_t>(device)] = 0; }
void DeviceBackend::release_private_pool(int device, PoolId pool) { memory(device).release_pool(pool); }

// --- streams

StreamId DeviceBackend::current_stream(int device) const {
  const StreamId id = selected ? selected->streams[static_cast<size_t>(device)] : 0;
  return id ? id : default_stream(device);
}

void DeviceBackend::set_current_stream(StreamId id) {
  const int device = stream(id).device;
  selection().streams[static_cast<size_t>(device)] = id == default_stream(device) ? 0 : id;
}

StreamId DeviceBackend::pooled_stream(int device, int priority) {
  const auto [least, greatest] = driver_.priority_range();
  priority = std::clamp(priority, greatest, least);
  const std::lock_guard lock(mutex_);
  auto pool = std::find_if(stream_pools_.begin(), stream_pools_.end(),
                           [&](const StreamPool& p) { return p.device == device && p.priority == priority; });
  if (pool == stream_pools_.end()) pool = stream_pools_.insert(pool, {device, priority, {}});
  if (pool->ids.size() < kPooledStreams) {
    const DeviceScope scope(driver_, device);
    pool->ids.push_back(static_cast<StreamId>(streams_.size()));
    streams_.push_back({device, priority, driver_.make_stream(priority)});
    return pool->ids.back();
  }
  return pool->ids[pool->next++ % kPooledStreams];
}

StreamId DeviceBackend::external_stream(int device, DeviceDriver::Stream handle) {
  if (!handle) return default_stream(device);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].handle == handle && streams_[i].device == device) return static_cast<StreamId>(i);
  streams_.push_back({device, 0, handle});
  return static_cast<StreamId>(streams_.size() - 1);
}

StreamInfo DeviceBackend::stream(StreamId id) const {
  const std::lock_guard lock(mutex_);
  RL_CHECK(id >= 0 && static_cast<size_t>(id) < streams_.size(), "no such stream: ", id);
  return streams_[static_cast<size_t>(id)];
}

// --- work

template <class F>
auto DeviceBackend::reported(int device, F&& f) {
  try {
    return f();
  } catch (const DeviceError& e) {
    throw DeviceError(explain(device, e.what()), e.code);
  }
}

void DeviceBackend::synchronize_stream(StreamId id) {
  const StreamInfo info = stream(id);
  const DeviceScope scope(driver_, info.device);
  reported(info.device, [&] { driver_.synchronize_stream(info.handle); });
}

void DeviceBackend::follow(StreamId later, StreamId earlier) {
  if (later == earlier) return;
  const StreamInfo before = stream(earlier), after = stream(later);
  const DeviceScope scope(driver_, before.device);
  const DeviceDriver::Event event = driver_.make_event(false, false);
  driver_.record_event(event, before.handle);
  driver_.set_device(after.device);
  driver_.wait_event(after.handle, event);
  driver_.release_event(event);
}

void DeviceBackend::synchronize(int device) {
  const DeviceScope scope(driver_, device);
  reported(device, [&] { driver_.synchronize_device(); });
  const std::lock_guard lock(mutex_);
  recent_[static_cast<size_t>(device)].count = 0;
}

void DeviceBackend::launched(int device, std::string_view what) {
  {
    const std::lock_guard lock(mutex_);
    Recent& recent = recent_[static_cast<size_t>(device)];
    recent.names[recent.count++ % kRemembered] = device_operator ? *device_operator : what;
  }
  if (is_blocking()) synchronize_stream(current_stream(device));
}

std::string DeviceBackend::explain(int device, const char* what) const {
  const std::lock_guard lock(mutex_);
  const Recent& recent = recent_[static_cast<size_t>(device)];
  std::string text = what;
  if (recent.count == 0) return text;
  const std::string_view last = recent.names[(recent.count - 1) % kRemembered];
  if (is_blocking()) return text + str("\nIt failed in the operator '", last, "'.");
  text += str("\nWork is reported late. The operators given to device ", device, " last, newest first: ");
  std::string_view previous;
  for (size_t i = 0; i < std::min(recent.count, kRemembered); ++i) {
    const std::string_view name = recent.names[(recent.count - 1 - i) % kRemembered];
    if (name == previous) continue;
    text += str(previous.empty() ? "" : ", ", name);
    previous = name;
  }
  return text + ".\nRUSHLIGHT_CUDA_BLOCKING=1 names the one that failed.";
}

// Both devices' current streams take part: the source's finished writing, and what the target's did before is
// past.
void DeviceBackend::copy_between_devices(void* to, int to_device, const void* from, int from_device,
                                         size_t nbytes) {
  const StreamId source = current_stream(from_device), target = current_stream(to_device);
  follow(source, target);
  {
    const DeviceScope scope(driver_, from_device);
    driver_.copy(to, from, nbytes, stream(source).handle);
  }
  follow(target, source);
}

void DeviceBackend::copy(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                         bool non_blocking) {
  if (nbytes == 0) return;
  const bool to_host = to_device.is_cpu(), from_host = from_device.is_cpu();
  const int device = to_host ? from_device.index() : to_device.index();
  reported(device, [&] {
    if (!to_host && !from_host && to_device != from_device)
      return copy_between_devices(to, to_device.index(), from, from_device.index(), nbytes);
    const StreamId id = current_stream(device);
    const StreamInfo info = stream(id);
    const DeviceScope scope(driver_, device);
    driver_.copy(to, from, nbytes, info.handle);
    if (!to_host && !from_host) return;
    const void* host = to_host ? to : from;
    if (non_blocking && is_pinned(host))
      pinned_.record_stream(pinned_.base_of(host), id);
    else
      driver_.synchronize_stream(info.handle);
  });
  launched(device, "copy");
}

}  // namespace rushlight

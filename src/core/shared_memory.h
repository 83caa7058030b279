// Storages that several processes look into.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/parallel.h"
#include "core/storage.h"

namespace rushlight::shared {

// Note [Shared memory]
// A process puts everything it shares into one slab: a sparse memfd, as large as the machine's memory, that
// is mapped once and cut into blocks by the caching allocator. So one descriptor serves any number of
// tensors, and no limit of /dev/shm applies. Only the slab's owner allocates in it.
//
// Each block is preceded by a header whose state word says who holds it: one bit for each process that has it
// mapped as a storage, and a count of messages that carry it and were not received yet. Whoever makes the
// state zero puts the block on a list of freed blocks in the slab, from which the owner takes it back. A
// process has one bit in a slab, whatever number of storages it made from a block. The bits of a process that
// died without a word are cleared by the owner, who checks now and then whether the others still live; the
// memory of a dead owner goes with the last process that maps its slab, which is the kernel's business.
//
// fork() gives the child a bit of its own in every block that the parent holds, before the child exists.

using SlabId = std::array<uint64_t, 2>;

/// What a message says about a storage.
struct Handle {
  SlabId slab{};
  uint64_t offset = 0, nbytes = 0, generation = 0;
  int fd = -1;  ///< the slab's descriptor in the sending process
};

struct Stats {
  size_t slabs = 0;           ///< mapped here; each takes one descriptor
  size_t held_blocks = 0;     ///< that storages of this process look into
  size_t pending_blocks = 0;  ///< of our own slab, held by other processes or messages only
  size_t allocated_bytes = 0, reserved_bytes = 0;
};

/// Uninitialised shared memory.
Storage allocate(size_t nbytes);
bool is_shared(const StorageImpl& storage);
/// Moves the bytes to shared memory; the storage object stays the same. `keep_former`: somebody may look at
/// the memory it had, so that lives on beside.
void share(StorageImpl& storage, bool keep_former = false);
/// Promises a shared storage to whoever gets the handle: the block waits for receive().
Handle send(StorageImpl& storage);
/// Whether this process has mapped the slab, so that receive() needs no descriptor.
bool is_attached(const SlabId& slab);
/// Maps the slab behind a descriptor, which it takes over.
void attach(int fd, const SlabId& expected);
/// A storage for the block. `reuse` is asked whether a storage that looks into it already will do.
Storage receive(const Handle& handle, detail::FunctionRef<bool(StorageImpl*)> reuse);
/// Takes a handle back that nobody will receive.
void abandon(const Handle& handle);
/// Gives idle memory of our own slab to the system.
void release_idle();
/// This process will share nothing more: only blocks that others hold keep memory.
void close_owned();
Stats stats();

}  // namespace rushlight::shared

#include "generation/page_pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace rushlight::generation {
namespace {

uint64_t hash_of(PagePool::Prefix before, std::span<const int64_t> tokens) {
  uint64_t h = before * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  for (const int64_t t : tokens) {
    h = (h ^ static_cast<uint64_t>(t)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

PagePool::PagePool(int64_t pages, int64_t page_tokens)
    : page_tokens_(page_tokens), pages_(static_cast<size_t>(pages)) {
  free_.reserve(pages_.size());
  for (int64_t i = pages; i-- > 0;) free_.push_back(i);
}

// Giving back never takes memory: `free_` has room for all.
void PagePool::release(int64_t page) noexcept {
  Page& p = at(page);
  if (--p.holders > 0) return;
  if (p.prefix != kNothing)
    link_newest(page);
  else
    free_.push_back(page);
}

std::optional<int64_t> PagePool::take() {
  int64_t page = -1;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (oldest_ >= 0) {
    page = oldest_;
    unlink(page);
    hide(at(page));
  } else {
    return std::nullopt;
  }
  at(page).holders = 1;
  return page;
}

int64_t PagePool::look_up(uint64_t hash, Prefix before, std::span<const int64_t> tokens) {
  const auto found = known_.find(hash);
  if (found == known_.end()) return -1;
  const Page& p = at(found->second);
  return p.before == before && std::ranges::equal(p.tokens, tokens) ? found->second : -1;
}

std::optional<int64_t> PagePool::find(Prefix& prefix, std::span<const int64_t> tokens) {
  const int64_t page = look_up(hash_of(prefix, tokens), prefix, tokens);
  if (page < 0) return std::nullopt;
  if (at(page).holders++ == 0) unlink(page);
  prefix = at(page).prefix;
  return page;
}

void PagePool::publish(int64_t page, Prefix& prefix, std::span<const int64_t> tokens) noexcept {
  const uint64_t hash = hash_of(prefix, tokens);
  if (const int64_t same = look_up(hash, prefix, tokens); same >= 0) {
    prefix = at(same).prefix;
    return;
  }
  Page& p = at(page);
  const Prefix before = std::exchange(prefix, next_++);
  if (p.prefix != kNothing) return;
  try {
    p.tokens.assign(tokens.begin(), tokens.end());
    if (!known_.emplace(hash, page).second) return;  // other tokens of an equal hash
  } catch (const std::bad_alloc&) {
    return;
  }
  p.before = before, p.prefix = prefix, p.hash = hash;
}

void PagePool::forget() noexcept {
  while (oldest_ >= 0) {
    const int64_t page = oldest_;
    unlink(page);
    hide(at(page));
    free_.push_back(page);
  }
  // What is held stays, but no new text finds it.
  for (Page& p : pages_)
    if (p.prefix != kNothing) hide(p);
}

void PagePool::hide(Page& p) noexcept {
  known_.erase(p.hash);
  p.prefix = p.before = kNothing;
}

void PagePool::link_newest(int64_t page) noexcept {
  Page& p = at(page);
  p.older = newest_, p.newer = -1;
  (newest_ >= 0 ? at(newest_).newer : oldest_) = page;
  newest_ = page;
  ++cached_;
}
void PagePool::unlink(int64_t page) noexcept {
  Page& p = at(page);
  (p.older >= 0 ? at(p.older).newer : oldest_) = p.newer;
  (p.newer >= 0 ? at(p.newer).older : newest_) = p.older;
  p.older = p.newer = -1;
  --cached_;
}

bool PageList::add_new() {
  list_.reserve(list_.size() + 1);
  const auto page = pool_->take();
  if (page) list_.push_back(*page);
  return page.has_value();
}
bool PageList::add_known(PagePool::Prefix& prefix, std::span<const int64_t> tokens) {
  list_.reserve(list_.size() + 1);
  const auto page = pool_->find(prefix, tokens);
  if (page) list_.push_back(*page);
  return page.has_value();
}
void PageList::clear() noexcept {
  for (; !list_.empty(); list_.pop_back()) pool_->release(list_.back());
}

}  // namespace rushlight::generation

// Which pages of keys and values are whose. Full pages are known by all tokens up to their end: texts that
// begin alike share them. One thread uses a pool.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace rushlight::generation {

class PagePool {
 public:
  // What a text's pages so far hold; equal for equal tokens.
  using Prefix = uint64_t;
  static constexpr Prefix kNothing = 0;

  PagePool(int64_t pages, int64_t page_tokens);

  // A page whose contents nobody needs; the one that was not used for longest may have to forget a prefix.
  std::optional<int64_t> take();
  void release(int64_t page) noexcept;
  // The page, held, that goes on from a prefix by these tokens, which are then part of the prefix.
  std::optional<int64_t> find(Prefix& prefix, std::span<const int64_t> tokens);
  // Tells others that a page, full now, goes on from a prefix by these tokens. Without memory for that, or
  // where another page does, nobody is told. The prefix becomes that of both.
  void publish(int64_t page, Prefix& prefix, std::span<const int64_t> tokens) noexcept;
  void forget() noexcept;  // pages that nobody holds

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }
  int64_t page_tokens() const { return page_tokens_; }
  int64_t available() const { return static_cast<int64_t>(free_.size()) + cached_; }
  int64_t cached() const { return cached_; }

 private:
  struct Page {
    int64_t holders = 0;
    Prefix before = kNothing, prefix = kNothing;  // prefix: kNothing until it is published
    uint64_t hash = 0;
    std::vector<int64_t> tokens;
    int64_t older = -1, newer = -1;  // in the list of those that nobody holds but a prefix knows
  };
  Page& at(int64_t page) { return pages_[static_cast<size_t>(page)]; }
  int64_t look_up(uint64_t hash, Prefix before, std::span<const int64_t> tokens);
  void hide(Page& page) noexcept;
  void link_newest(int64_t page) noexcept;
  void unlink(int64_t page) noexcept;

  const int64_t page_tokens_;
  std::vector<Page> pages_;
  std::vector<int64_t> free_;
  std::unordered_map<uint64_t, int64_t> known_;
  int64_t oldest_ = -1, newest_ = -1, cached_ = 0;
  Prefix next_ = 1;
};

// The pages of one text, given back when it dies.
class PageList {
 public:
  explicit PageList(PagePool& pool) : pool_(&pool) {}
  ~PageList() { clear(); }
  PageList(const PageList&) = delete;
  PageList& operator=(const PageList&) = delete;

  bool add_new();  // false: there is none
  bool add_known(PagePool::Prefix& prefix, std::span<const int64_t> tokens);
  void clear() noexcept;  // the last first, so that beginnings are known for longest
  std::span<const int64_t> list() const { return list_; }
  int64_t tokens() const { return static_cast<int64_t>(list_.size()) * pool_->page_tokens(); }

 private:
  PagePool* pool_;
  std::vector<int64_t> list_;
};

}  // namespace rushlight::generation

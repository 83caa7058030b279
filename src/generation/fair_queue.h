// A queue in which keys take turns, however much one of them asks for.
#pragma once
#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

namespace rushlight::generation {

template <class T>
class FairQueue {
 public:
  using Item = std::unique_ptr<T>;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The item stays the caller's where there is no memory for it.
  void push(Item&& item, const std::string& key) {
    add(key, false, [&](Line& line) { line.push_back(std::move(item)); });
  }
  // It had its turn, and comes next again.
  void put_back(Item&& item, const std::string& key) {
    add(key, true, [&](Line& line) { line.push_front(std::move(item)); });
  }
  T& next() { return *lines_.at(turns_.front()).front(); }
  Item pop() {
    const auto found = lines_.find(turns_.front());
    Item item = std::move(found->second.front());
    found->second.pop_front();
    --size_;
    if (found->second.empty()) {
      lines_.erase(found);
      turns_.pop_front();
    } else {
      turns_.splice(turns_.end(), turns_, turns_.begin());
    }
    return item;
  }
  // One item for which `which` holds; null if there is none.
  template <class F>
  Item take(F&& which) {
    for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
      const auto found = lines_.find(*turn);
      for (auto i = found->second.begin(); i != found->second.end(); ++i)
        if (which(**i)) {
          Item item = std::move(*i);
          found->second.erase(i);
          --size_;
          if (found->second.empty()) {
            lines_.erase(found);
            turns_.erase(turn);
          }
          return item;
        }
    }
    return nullptr;
  }

 private:
  using Line = std::deque<Item>;

  template <class F>
  void add(const std::string& key, bool first, F&& put) {
    std::list<std::string> turn{key};  // before anything changes
    const auto [found, is_new] = lines_.try_emplace(key);
    try {
      put(found->second);
    } catch (...) {
      if (is_new) lines_.erase(found);
      throw;
    }
    ++size_;
    const auto place = first ? turns_.begin() : turns_.end();
    if (is_new)
      turns_.splice(place, turn);
    else if (first)
      turns_.splice(place, turns_, std::ranges::find(turns_, key));
  }

  std::unordered_map<std::string, Line> lines_;  // none is empty
  std::list<std::string> turns_;
  size_t size_ = 0;
};

}  // namespace rushlight::generation

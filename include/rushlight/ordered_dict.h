// OrderedDict: keys and values in order of insertion.
#pragma once
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"

namespace rushlight {

template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const { return pair_.first; }
    Value& value() { return pair_.second; }
    const Value& value() const { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const { return pair_; }
    template <size_t I>
    const auto& get() const {
      if constexpr (I == 0)
        return pair_.first;
      else
        return pair_.second;
    }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  explicit OrderedDict(std::string key_description = "Key") : description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }
  Item& front() {
    RL_CHECK(!is_empty(), "Called front() on an empty OrderedDict");
    return items_.front();
  }
  Item& back() {
    RL_CHECK(!is_empty(), "Called back() on an empty OrderedDict");
    return items_.back();
  }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  const std::string& key_description() const { return description_; }

  Value* find(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &items_[found->second].value();
  }
  const Value* find(const Key& key) const { return const_cast<OrderedDict*>(this)->find(key); }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  Value& operator[](const Key& key) {
    if (Value* v = find(key)) return *v;
    RL_FAIL(description_, " '", key, "' is not defined");
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }
  Item& operator[](size_t i) {
    RL_CHECK_INDEX(i < items_.size(), "Index ", i, " is out of bounds");
    return items_[i];
  }
  const Item& operator[](size_t i) const { return const_cast<OrderedDict&>(*this)[i]; }

  Value& insert(Key key, Value value) {
    RL_CHECK(!contains(key), description_, " '", key, "' already defined");
    index_.emplace(key, items_.size());
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void erase(const Key& key) {
    RL_CHECK(contains(key), "Key '", key, "' doesn't exist");
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(index_[key]));
    index_.clear();
    for (size_t i = 0; i < items_.size(); ++i) index_.emplace(items_[i].key(), i);
  }
  void clear() { items_.clear(), index_.clear(); }
  void reserve(size_t n) { items_.reserve(n); }

  const std::vector<Item>& items() const { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> list;
    for (const Item& item : items_) list.push_back(item.key());
    return list;
  }
  std::vector<Value> values() const {
    std::vector<Value> list;
    for (const Item& item : items_) list.push_back(item.value());
    return list;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> list;
    for (const Item& item : items_) list.push_back(item.pair());
    return list;
  }

 private:
  std::unordered_map<Key, size_t> index_;
  std::vector<Item> items_;
  std::string description_;
};

}  // namespace rushlight

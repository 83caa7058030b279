// Pages of keys and values among texts, and whose turn it is.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "generation/fair_queue.h"
#include "generation/page_pool.h"

namespace rushlight::generation {
namespace {

using Ids = std::vector<int64_t>;

TEST(TextPages, FullPagesAreFoundByAllTokensBeforeTheirEnd) {
  PagePool pool(4, 2);
  PagePool::Prefix prefix = PagePool::kNothing;
  {
    PageList list(pool);
    ASSERT_TRUE(list.add_new() && list.add_new());
    pool.publish(list.list()[0], prefix, Ids{1, 2});
    pool.publish(list.list()[1], prefix, Ids{3, 4});
  }
  EXPECT_EQ(pool.available(), 4);
  EXPECT_EQ(pool.cached(), 2);
  PageList same(pool);
  PagePool::Prefix found = PagePool::kNothing;
  EXPECT_FALSE(same.add_known(found, Ids{3, 4}));  // not at the beginning
  EXPECT_TRUE(same.add_known(found, Ids{1, 2}));
  EXPECT_FALSE(same.add_known(found, Ids{3, 5}));
  EXPECT_TRUE(same.add_known(found, Ids{3, 4}));
  EXPECT_EQ(found, prefix);
  EXPECT_EQ(pool.cached(), 0);
  EXPECT_EQ(pool.available(), 2);
  pool.forget();  // held pages stay held, and nobody finds them
  PageList none(pool);
  found = PagePool::kNothing;
  EXPECT_FALSE(none.add_known(found, Ids{1, 2}));
  same.clear();
  EXPECT_EQ(pool.available(), 4);
  EXPECT_EQ(pool.cached(), 0);
}

TEST(TextPages, EqualPagesOfTwoTextsContinueOnePrefix) {
  PagePool pool(4, 1);
  PageList a(pool), b(pool);
  ASSERT_TRUE(a.add_new() && b.add_new() && b.add_new());
  PagePool::Prefix first = PagePool::kNothing, second = PagePool::kNothing;
  pool.publish(a.list()[0], first, Ids{7});
  pool.publish(b.list()[0], second, Ids{7});
  EXPECT_EQ(first, second);
  pool.publish(b.list()[1], second, Ids{8});
  PageList c(pool);
  PagePool::Prefix found = PagePool::kNothing;
  EXPECT_TRUE(c.add_known(found, Ids{7}) && c.add_known(found, Ids{8}));
  EXPECT_EQ(c.list()[0], a.list()[0]);
}

TEST(TextPages, WhatWasNotUsedForLongestIsForgottenFirst) {
  PagePool pool(3, 1);
  for (int64_t i = 0; i < 3; ++i) {
    PageList list(pool);
    ASSERT_TRUE(list.add_new());
    PagePool::Prefix prefix = PagePool::kNothing;
    pool.publish(list.list()[0], prefix, Ids{i});
  }
  const auto knows = [&](int64_t token) {
    PagePool::Prefix prefix = PagePool::kNothing;
    PageList list(pool);
    return list.add_known(prefix, Ids{token});
  };
  EXPECT_TRUE(knows(0));  // and is the newest now
  PageList one(pool);
  ASSERT_TRUE(one.add_new());
  EXPECT_TRUE(knows(0) && !knows(1) && knows(2));
}

TEST(TextPages, NoPageIsLostOrGivenTwice) {
  constexpr int64_t kPages = 12, kTexts = 5;
  PagePool pool(kPages, 2);
  std::mt19937 random(1);
  std::vector<std::unique_ptr<PageList>> texts(kTexts);
  std::vector<PagePool::Prefix> prefixes(kTexts);
  for (int round = 0; round < 20000; ++round) {
    const size_t i = random() % kTexts;
    if (!texts[i] || random() % 6 == 0) {
      texts[i] = std::make_unique<PageList>(pool);
      prefixes[i] = PagePool::kNothing;
    }
    const Ids tokens{static_cast<int64_t>(random() % 2), static_cast<int64_t>(random() % 2)};
    if (random() % 3 == 0 && texts[i]->add_known(prefixes[i], tokens)) continue;
    if (texts[i]->add_new()) pool.publish(texts[i]->list().back(), prefixes[i], tokens);
    if (random() % 997 == 0) pool.forget();
    std::set<int64_t> held;
    for (const auto& t : texts)
      if (t) held.insert(t->list().begin(), t->list().end());
    ASSERT_EQ(static_cast<int64_t>(held.size()) + pool.available(), kPages);
  }
  texts.clear();
  EXPECT_EQ(pool.available(), kPages);
}

TEST(FairQueue, KeysTakeTurns) {
  FairQueue<int> queue;
  const auto push = [&](int i, const char* key) { queue.push(std::make_unique<int>(i), key); };
  push(1, "a"), push(2, "a"), push(3, "b"), push(4, "a"), push(5, "c");
  EXPECT_EQ(*queue.pop(), 1);
  EXPECT_EQ(*queue.pop(), 3);
  queue.put_back(std::make_unique<int>(6), "b");  // has its turn again, as a key of its own and of many
  EXPECT_EQ(queue.next(), 6);
  queue.put_back(std::make_unique<int>(7), "a");
  EXPECT_EQ(*queue.pop(), 7);
  EXPECT_EQ(queue.size(), 4u);
  const auto four = queue.take([](int i) { return i == 4; });
  EXPECT_EQ(*four, 4);
  EXPECT_EQ(queue.take([](int i) { return i == 4; }), nullptr);
  std::multiset<int> left;
  while (!queue.empty()) left.insert(*queue.pop());
  EXPECT_EQ(left, (std::multiset<int>{2, 5, 6}));
}

}  // namespace
}  // namespace rushlight::generation

// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary lists are packed when rows need them: threads with other lists do not wait, those with
// the same list get what one of them has packed, and a list that could not be packed leaves
// nothing.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/cpu/list_projections.h"

namespace {

using namespace ct2triton;

constexpr unsigned kMost_s = 60;
constexpr size_t kOutputs = 100;
constexpr size_t kOutputBytes = 10;

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "list_packing: %s\n", what.c_str());
  std::abort();
}

// A product of this many outputs, which computes nothing.
class Product final : public Linear {
 public:
  using Packing = std::function<void(size_t outputs)>;
  explicit Product(size_t outputs, Packing packing = nullptr)
      : outputs_(outputs), packing_(std::move(packing)) {}

  size_t inputs() const override { return 1; }
  size_t outputs() const override { return outputs_; }
  size_t bytes() const override { return outputs_ * kOutputBytes; }
  void Apply(const float*, size_t, float*, const float*) const override {}
  void Choose(const float*, const std::vector<products::ChoiceRules>&,
              products::ChosenLogit*) const override {}
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override {
    packing_(outputs.size());
    return std::make_unique<Product>(outputs.size());
  }

 private:
  const size_t outputs_;
  const Packing packing_;
};

VocabularyMap ListOf(int64_t size) {
  std::vector<std::string> tokens(kOutputs);
  for (size_t i = 0; i < kOutputs; ++i) tokens[i] = std::to_string(i);
  LanguageList list{"a language", {}, {}, {}};
  for (int64_t id = 0; id < size; ++id) list.tokens.push_back(id);
  return {list, 1, Vocabulary(std::move(tokens), "0"), /*end_id=*/0, {}};
}

void OthersDoNotWait() {
  const VocabularyMap packed = ListOf(10), held = ListOf(50), other = ListOf(20);
  std::promise<void> begun, go;
  const Product whole(kOutputs, [&](size_t outputs) {
    if (outputs != held.numbered().size()) return;
    begun.set_value();  // throws if it is packed twice
    go.get_future().wait();
  });
  ListProjections lists(whole, {packed.numbered().size() * kOutputBytes});
  for (const VocabularyMap* list : {&packed, &held, &other}) lists.Add(*list);
  lists.Get(packed);  // so it is in use and makes no room
  const auto get = [&] { return lists.Get(held); };
  auto first = std::async(std::launch::async, get);
  auto second = std::async(std::launch::async, get);
  begun.get_future().wait();
  const size_t before = lists.bytes();
  Require(before == (packed.numbered().size() + held.numbered().size()) * kOutputBytes,
          "a list is packed without room for it");
  Require(lists.Get(packed)->outputs() == packed.numbered().size(), "another list");
  Require(lists.GetOnce(packed) == lists.Get(packed), "packed again");
  Require(lists.Get(other)->outputs() == other.numbered().size(), "another list");
  go.set_value();
  Require(first.get() == second.get(), "two threads have a list each");
  Require(lists.bytes() == before + lists.BytesOf(other), "bytes of lists are not counted");
}

void AFailureLeavesNothing() {
  const VocabularyMap list = ListOf(10);
  bool fails = true;
  const Product whole(kOutputs, [&](size_t) {
    if (std::exchange(fails, false)) throw std::bad_alloc();
  });
  ListProjections lists(whole, {/*most_bytes=*/0});
  lists.Add(list);
  bool failed = false;
  try {
    lists.Get(list);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  Require(failed && lists.bytes() == 0, "a list that was not packed is counted");
  Require(lists.Get(list)->outputs() == list.numbered().size(), "a list is lost by a failure");
  Require(lists.bytes() == lists.BytesOf(list), "bytes of lists are not counted");
}

}  // namespace

int main() {
  alarm(kMost_s);  // ends what hangs
  OthersDoNotWait();
  AFailureLeavesNothing();
  std::puts("no thread waited for another one's list");
}

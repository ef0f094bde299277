// SPDX-License-Identifier: Apache-2.0
#include "text/piece_tries.h"

#include <darts.h>

#include <algorithm>
#include <optional>
#include <string>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

// Bit 31 is set in a unit that holds a value.
constexpr uint32_t kLeaf = 1U << 31;

[[noreturn]] void Refuse(const std::string& what) { ThrowInvalid("it cannot be used: " + what); }

// If `values` is null, keys have no values, and no two keys share units.
void Build(const std::vector<std::string_view>& keys, const int* values, Darts::DoubleArray* trie) {
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string_view key : keys) {
    starts.push_back(key.data());
    sizes.push_back(key.size());
  }
  try {
    trie->build(keys.size(), starts.data(), sizes.data(), values);
  } catch (const Darts::Details::Exception& error) {
    Refuse(std::string("its pieces make no trie: ") + error.what());
  }
}

std::vector<uint8_t> Bytes(const void* units, size_t size_bytes) {
  const auto* first = static_cast<const uint8_t*>(units);
  return std::vector<uint8_t>(first, first + size_bytes);
}

// Bytes of the character at the start, by its first byte alone.
size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return std::min(size, text.size());
}

std::vector<std::string_view> CharacterPairs(const std::vector<std::string_view>& pieces) {
  std::vector<std::string_view> pairs;
  for (const std::string_view piece : pieces) {
    size_t before = 0;
    for (size_t at = 0; at < piece.size();) {
      const size_t size = CharacterSize(piece.substr(at));
      if (before > 0) pairs.push_back(piece.substr(at - before, before + size));
      before = size;
      at += size;
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

// A built trie, unit by unit.
class Units {
 public:
  Units(const void* units, size_t count)
      : units_(static_cast<const Darts::Details::DoubleArrayUnit*>(units)), count_(count) {}

  // The unit that a key leads to, if the trie has the key.
  std::optional<size_t> Find(std::string_view key) const {
    size_t at = 0;
    for (const char c : key) {
      const auto byte = static_cast<uint8_t>(c);
      at ^= units_[at].offset() ^ byte;
      if (at >= count_ || units_[at].label() != byte) return std::nullopt;
    }
    return at;
  }

  // The unit with the value of a key that the trie has.
  size_t Leaf(std::string_view key) const {
    const size_t end = Find(key).value();
    return end ^ units_[end].offset();
  }

 private:
  const Darts::Details::DoubleArrayUnit* units_;
  size_t count_;
};

}  // namespace

std::vector<uint8_t> TrieOf(std::vector<std::pair<std::string_view, int>> keys) {
  if (keys.empty()) return {};
  std::sort(keys.begin(), keys.end());
  std::vector<std::string_view> texts;
  std::vector<int> values;
  for (const auto& [text, value] : keys) {
    if (!texts.empty() && texts.back() == text) {
      Refuse("it has the piece " + Quote(text) + " twice");
    }
    texts.push_back(text);
    values.push_back(value);
  }
  Darts::DoubleArray trie;
  Build(texts, values.data(), &trie);
  return Bytes(trie.array(), trie.total_size());
}

std::vector<uint8_t> TrieOfCharacterPairs(const std::vector<std::string_view>& pieces) {
  const std::vector<std::string_view> pairs = CharacterPairs(pieces);
  if (pairs.empty()) return {};
  Darts::DoubleArray trie;
  Build(pairs, nullptr, &trie);
  // Without values no two keys share units, so values can be written into the built trie without
  // moving the units that they refer to.
  std::vector<uint8_t> bytes = Bytes(trie.array(), trie.total_size());
  auto* values = reinterpret_cast<uint32_t*>(bytes.data());
  const Units units(trie.array(), bytes.size() / sizeof(uint32_t));
  for (const std::string_view pair : pairs) {
    const std::string_view second = pair.substr(CharacterSize(pair));
    values[units.Leaf(pair)] = static_cast<uint32_t>(units.Find(second).value_or(0)) | kLeaf;
  }
  return bytes;
}

}  // namespace ct2triton

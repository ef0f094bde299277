// SPDX-License-Identifier: Apache-2.0
#include "text/pieces.h"

#include <algorithm>

#include "text/utf8.h"

namespace ct2triton {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Appends bytes that pieces gave one by one; what is no UTF-8 is replaced. `more_follow`: what may
// become a character with them is left out.
void AppendBytes(std::string* bytes, std::string* text, bool more_follow = false) {
  constexpr size_t kLongestCharacter = 4;
  std::string_view rest = *bytes;
  while (!rest.empty()) {
    const size_t size = Utf8Character(rest);
    if (more_follow && size == 0 && rest.size() < kLongestCharacter) break;
    text->append(size > 0 ? rest.substr(0, size) : kReplacement);
    rest.remove_prefix(size > 0 ? size : 1);
  }
  bytes->clear();
}

}  // namespace

std::vector<int> Pieces::Encode(std::string_view text) const {
  if (with_tokens_ != nullptr) return with_tokens_->Encode(text, id_by_piece_);
  std::vector<int> ids = split_->Split(text);
  for (int& id : ids) id = id_by_piece_[static_cast<size_t>(id)];
  return ids;
}

std::string Pieces::Decode(const int* ids, size_t count, int end) const {
  return Join(ids, count, end, /*more_follow=*/false);
}

// Spaces at the end show only before something else.
std::string Pieces::DecodeSettled(const int* ids, size_t count, int end) const {
  return Join(ids, count, end, /*more_follow=*/true);
}

std::string Pieces::Join(const int* ids, size_t count, int end, bool more_follow) const {
  const size_t known = std::min(surfaces_.size(), static_cast<size_t>(std::max(end, 0)));
  std::string text;
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= known) continue;
    const Surface& surface = surfaces_[static_cast<size_t>(ids[i])];
    if (surface.kind == Surface::Kind::kNone) continue;
    if (surface.kind == Surface::Kind::kByte) {
      bytes += surface.text;
      continue;
    }
    AppendBytes(&bytes, &text);
    text += surface.text;
  }
  AppendBytes(&bytes, &text, more_follow);
  return std::string(Stripped(text));
}

std::vector<int> Pieces::TextIds() const {
  std::vector<int> ids;
  for (size_t i = 0; i < surfaces_.size(); ++i) {
    if (surfaces_[i].kind != Surface::Kind::kNone) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

}  // namespace ct2triton

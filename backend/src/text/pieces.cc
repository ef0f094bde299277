// SPDX-License-Identifier: Apache-2.0
#include "text/pieces.h"

#include <algorithm>

#include "text/code_points.h"
#include "text/piece_places.h"

namespace ct2triton {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Appends bytes of byte pieces; invalid UTF-8 is replaced. `more_follow`: more bytes follow, so an
// incomplete character at the end is left out.
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

constexpr size_t kNoText = std::string::npos;

// Spans from each of these places in a text to the next one, relative to the stripped text. Bytes
// of one character share a place, and all get the same span.
std::vector<Span> Between(const std::vector<size_t>& begins, std::string_view text,
                          std::string_view stripped) {
  const auto lead = static_cast<size_t>(stripped.data() - text.data());
  const auto inside = [&](size_t at) { return std::min(at - std::min(at, lead), stripped.size()); };
  std::vector<Span> spans(begins.size());
  size_t end = text.size();
  size_t next = text.size();
  for (size_t i = begins.size(); i > 0; --i) {
    const size_t begin = begins[i - 1];
    if (begin == kNoText) continue;
    if (next > begin) end = next;
    next = begin;
    spans[i - 1] = {inside(begin), inside(end)};
  }
  return spans;
}

}  // namespace

std::vector<int> Pieces::Encode(std::string_view text) const {
  if (with_tokens_ != nullptr) return with_tokens_->Encode(text, id_by_piece_);
  std::vector<int> ids = split_->Split(text);
  for (int& id : ids) id = id_by_piece_[static_cast<size_t>(id)];
  return ids;
}

std::string Pieces::Decode(const int* ids, size_t count, int end, std::vector<Span>* places) const {
  return Join(ids, count, end, /*more_follow=*/false, places);
}

// Spaces at the end are left out, because they only appear before other text.
std::string Pieces::DecodeSettled(const int* ids, size_t count, int end) const {
  return Join(ids, count, end, /*more_follow=*/true, nullptr);
}

std::vector<Span> Pieces::Places(std::string_view text) const {
  // With added tokens, a text is split in parts, so spans of single pieces are not known.
  if (with_tokens_ != nullptr) {
    const size_t count = with_tokens_->Encode(text, id_by_piece_).size();
    return std::vector<Span>(count, Trimmed(text, {0, text.size()}));
  }
  constexpr char kUnknown = '\x1a';  // stands for characters that no piece has
  std::string joined;
  std::vector<Span> spans;
  for (const int piece : split_->Split(text)) {
    const size_t begin = joined.size();
    const PieceType type = split_->type(piece);
    if (type == PieceType::kByte) {  // "<0x41>"
      joined +=
          static_cast<char>(std::stoi(std::string(split_->text(piece).substr(3, 2)), nullptr, 16));
    } else if (type == PieceType::kUnknown) {
      joined += kUnknown;
    } else {
      joined += WithSpaces(split_->text(piece));
    }
    spans.push_back({begin, joined.size()});
  }
  return PiecePlaces(text, joined, spans);
}

std::string Pieces::Join(const int* ids, size_t count, int end, bool more_follow,
                         std::vector<Span>* places) const {
  const size_t known = std::min(surfaces_.size(), static_cast<size_t>(std::max(end, 0)));
  std::string text;
  std::string bytes;
  std::vector<size_t> begins(places == nullptr ? 0 : count, kNoText);
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= known) continue;
    const Surface& surface = surfaces_[static_cast<size_t>(ids[i])];
    if (surface.kind == Surface::Kind::kNone) continue;
    if (surface.kind == Surface::Kind::kByte) {
      if (places != nullptr) begins[i] = text.size();
      bytes += surface.text;
      continue;
    }
    AppendBytes(&bytes, &text);
    if (places != nullptr) begins[i] = text.size();
    text += surface.text;
  }
  AppendBytes(&bytes, &text, more_follow);
  const std::string_view stripped = Stripped(text);
  if (places != nullptr) *places = Between(begins, text, stripped);
  return std::string(stripped);
}

std::vector<int> Pieces::TextIds() const {
  std::vector<int> ids;
  for (size_t i = 0; i < surfaces_.size(); ++i) {
    if (surfaces_[i].kind != Surface::Kind::kNone) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

}  // namespace ct2triton

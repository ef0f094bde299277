// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "text/code_points.h"

namespace ct2triton {
namespace {

void Append(const std::vector<int>& ids, std::vector<int>* row) {
  row->insert(row->end(), ids.begin(), ids.end());
}

void CheckUtf8(std::string_view text) {
  const auto offset = InvalidUtf8(text);
  if (!offset) return;
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text[*offset]);
  ThrowInvalid("the text is not valid UTF-8: byte 0x" +
               std::string{kDigits[byte >> 4], kDigits[byte & 15]} + " at offset " +
               std::to_string(*offset) + " begins no character");
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::Load(const std::filesystem::path& folder) {
  TokenRules rules = TokenRules::Read(folder);
  std::shared_ptr<const Pieces> pieces = Pieces::Read(folder, rules);
  std::shared_ptr<const Pieces> of_targets =
      Pieces::SidesDiffer(folder, rules) ? Pieces::Read(folder, rules, Side::kTarget) : pieces;
  const bool numbers_differ = Pieces::NumbersDiffer(folder, rules);
  return std::shared_ptr<const Tokenizer>(
      new Tokenizer(std::move(rules), std::move(pieces), std::move(of_targets), numbers_differ));
}

Tokenizer::Tokenizer(TokenRules rules, std::shared_ptr<const Pieces> pieces,
                     std::shared_ptr<const Pieces> of_targets, bool numbers_differ)
    : rules_(std::move(rules)),
      pieces_(std::move(pieces)),
      of_targets_(std::move(of_targets)),
      numbers_differ_(numbers_differ) {
  for (const int id : rules_.special_ids) {
    if (id < 0) continue;
    const auto at = static_cast<size_t>(id);
    if (at >= is_special_.size()) is_special_.resize(at + 1);
    is_special_[at] = true;
  }
}

std::string Tokenizer::Language(std::string_view name, Side side) const {
  const ct2triton::Language* language = rules_.Find(name, side);
  return language == nullptr ? std::string() : language->code;
}

std::vector<int> Tokenizer::PiecesOf(std::string_view text) const {
  return Split(text, *pieces_, /*source_ids=*/true);
}

std::vector<int> Tokenizer::TargetPiecesOf(std::string_view text) const {
  return Split(text, *of_targets_, /*source_ids=*/!numbers_differ_);
}

// `source_ids`: the pieces have source IDs, by which special tokens are recognized.
std::vector<int> Tokenizer::Split(std::string_view text, const Pieces& pieces,
                                  bool source_ids) const {
  CheckUtf8(text);
  if (Stripped(text).empty()) return {};
  std::vector<int> ids = pieces.Encode(text);
  bool is_blank = true;
  for (int& id : ids) {
    // Some vocabularies list special tokens (`</s>`, `<2fr>`) among the pieces of text.
    if (source_ids && static_cast<size_t>(id) < is_special_.size() &&
        is_special_[static_cast<size_t>(id)]) {
      id = rules_.unk_id;
    }
    is_blank = is_blank && id == pieces.space_id();
  }
  return is_blank ? std::vector<int>() : ids;
}

Frame Tokenizer::FrameOf(std::string_view source_language, std::string_view target_language) const {
  const ct2triton::Language* source = rules_.Find(source_language, Side::kSource);
  const ct2triton::Language* target = rules_.Find(target_language, Side::kTarget);
  Frame frame;
  if (source != nullptr && !rules_.source_last) Append(source->source_ids, &frame.before);
  if (target != nullptr) Append(target->target_source_ids, &frame.before);
  Append(rules_.end_ids, &frame.after);
  if (source != nullptr && rules_.source_last) Append(source->source_ids, &frame.after);
  return frame;
}

std::vector<int> Frame::Around(const std::vector<int>& pieces) const {
  std::vector<int> row;
  if (pieces.empty()) return row;
  row.reserve(size() + pieces.size());
  Append(before, &row);
  Append(pieces, &row);
  Append(after, &row);
  return row;
}

std::vector<int> Tokenizer::Source(std::string_view text, std::string_view source_language,
                                   std::string_view target_language) const {
  return FrameOf(source_language, target_language).Around(PiecesOf(text));
}

// Where spans are not known, pieces are assumed to be of equal length.
size_t Tokenizer::Fitting(std::string_view text, size_t most_pieces) const {
  const std::vector<Span> places = pieces_->Places(text);
  if (places.size() <= most_pieces) return text.size();
  size_t end = 0;
  for (size_t i = most_pieces; i > 0 && end == 0; --i) end = places[i - 1].end;
  return end > 0 && end < places.back().end ? end : text.size() * most_pieces / places.size();
}

std::vector<int> Tokenizer::Prefix(std::string_view target_language) const {
  const ct2triton::Language* target = rules_.Find(target_language, Side::kTarget);
  return target == nullptr ? std::vector<int>() : target->target_prefix_ids;
}

size_t Tokenizer::PrefixLength(std::string_view target_language) const {
  const size_t length = Prefix(target_language).size();
  return rules_.prefix_starts && length > 0 ? length - 1 : length;
}

std::vector<Span> Tokenizer::SourcePlaces(std::string_view text, std::string_view source_language,
                                          std::string_view target_language, size_t ids) const {
  const Frame frame = FrameOf(source_language, target_language);
  std::vector<Span> places(frame.before.size());
  const std::vector<Span> pieces = pieces_->Places(text);
  places.insert(places.end(), pieces.begin(), pieces.end());
  places.resize(std::min(places.size(), ids - std::min(ids, frame.after.size())));
  return places;
}

std::string Tokenizer::Text(const int* ids, size_t count, std::vector<Span>* places) const {
  return pieces_->Decode(ids, count, rules_.tokenizer_size, places);
}

std::string Tokenizer::SettledText(const int* ids, size_t count) const {
  return pieces_->DecodeSettled(ids, count, rules_.tokenizer_size);
}

}  // namespace ct2triton

// SPDX-License-Identifier: Apache-2.0
#include "serving/row_maker.h"

#include <algorithm>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "text/code_points.h"

namespace ct2triton {
namespace {

// Work of a row, of a text and of a byte that is only cut, relative to a tokenized byte.
constexpr size_t kRowWork = 16;
constexpr size_t kTextWork = 64;
constexpr size_t kBytesCutAtOnce = 8;

// A sentence with more bytes per available ID is cut without tokenizing all of it first.
constexpr size_t kMostBytesOfId = 8;
constexpr size_t kBytesOfId = 5;        // a high estimate of the average
constexpr size_t kMostTried = 1 << 16;  // ids

IdView ViewOf(const std::vector<int>& ids) {
  return IdView(ids.data(), ids.size(), IntegerType::kInt32);
}

}  // namespace

size_t RowMaker::Begin(std::string text, const std::string& source,
                       const std::vector<WantedTarget>& targets) {
  TextPlan& plan = plans_.emplace_back();
  targets_.clear();
  CheckText(tensor::kTextInput, text);
  plan.source = tokenizer_.Language(source, Side::kSource);
  plan.text = std::move(text);
  spans_ = Segment(plan.text, plan.source.empty() ? source : plan.source, split_);
  next_ = 0;
  size_t around = 0;
  size_t work = kTextWork + plan.text.size() / kBytesCutAtOnce + targets.size() * kRowWork;
  for (const WantedTarget& wanted : targets) {
    plan.targets.push_back(tokenizer_.Language(wanted.language, Side::kTarget));
    targets_.push_back(TargetOf(wanted, plan));
    around = std::max(around, targets_.back().frame.size());
    work += wanted.prefix.size() + wanted.draft.size() / kBytesCutAtOnce;
  }
  room_ = longest_ - std::min(longest_, around);
  return work;
}

// A draft with more sentences than its text is ignored, because the sentences cannot be matched.
RowMaker::Target RowMaker::TargetOf(const WantedTarget& wanted, const TextPlan& plan) const {
  CheckText(tensor::kTextPrefix, wanted.prefix);
  CheckText(tensor::kDraft, wanted.draft);
  if (wanted.prefix.size() > MostBytesOfAnswer()) {
    RefuseText("its " + std::to_string(wanted.prefix.size()) + " bytes are more than " +
                   std::to_string(kMostBytesOfId) + " for each token of the model's " +
                   "decoding_length_limit " + std::to_string(engine_.decoding_length_limit),
               tensor::kTextPrefix);
  }
  const std::string& language = plan.targets.back();
  const std::string code = language.empty() ? std::string(wanted.language) : language;
  Target target{tokenizer_.Prefix(language), tokenizer_.FrameOf(plan.source, language),
                tokenizer_.TargetPiecesOf(wanted.prefix), wanted,
                Segment(wanted.draft, code, split_)};
  if (target.drafts.size() > spans_.size()) target.drafts = {};
  return target;
}

// Usual size of a translation with as many tokens as the model allows.
size_t RowMaker::MostBytesOfAnswer() const {
  return kMostBytesOfId * static_cast<size_t>(engine_.decoding_length_limit);
}

void RowMaker::RefuseText(const std::string& what, const char* input) const {
  ThrowInvalid(std::string(input) + ", row " + std::to_string(plans_.size() - 1) + ": " + what);
}

void RowMaker::CheckText(const char* input, std::string_view text) const {
  if (text.size() > static_cast<size_t>(engine_.max_text_bytes)) {
    RefuseText("its " + std::to_string(text.size()) + " bytes are more than the model's " +
                   "max_text_bytes " + std::to_string(engine_.max_text_bytes),
               input);
  }
  if (const auto offset = InvalidUtf8(text)) {
    RefuseText("it is not UTF-8: the byte at offset " + std::to_string(*offset) +
                   " belongs to no character",
               input);
  }
}

std::string_view RowMaker::TextOf(const Span& span) const {
  return std::string_view(plans_.back().text).substr(span.begin, span.end - span.begin);
}

// If no part fits, the row keeps its length, and the check that follows refuses it.
size_t RowMaker::AddSentence() {
  Span& rest = spans_[next_];
  const bool first = !cutting_;
  const size_t bytes = rest.end - rest.begin;
  size_t work = 0;
  if (first && bytes / kMostBytesOfId <= room_) {
    const std::vector<int> pieces = tokenizer_.PiecesOf(TextOf(rest));
    work += bytes;
    cutting_ = pieces.size() > room_;
    if (!cutting_) work += AddRows(rest, /*split=*/false, pieces);
  } else {
    cutting_ = true;
  }
  if (cutting_) work += AddPart(&rest, first);
  cutting_ = cutting_ && rest.begin < rest.end;
  if (!cutting_) ++next_;
  return work + plans_.back().targets.size() * kRowWork;
}

// Cuts the longest part that fits from the beginning of a sentence. A part alone may have a few
// more IDs than inside the sentence; then it is tried again with less room.
size_t RowMaker::AddPart(Span* rest, bool first) {
  size_t work = 0;
  const Span whole = *rest;
  for (size_t room = std::max<size_t>(room_, 1);;) {
    *rest = whole;
    const size_t tried = std::min(room, kMostTried) * kBytesOfId;
    const Span part = TakePart(plans_.back().text, rest, tried, [&](std::string_view begin) {
      work += begin.size();
      return tokenizer_.Fitting(begin, room);
    });
    const std::vector<int> pieces = tokenizer_.PiecesOf(TextOf(part));
    work += part.end - part.begin;
    if (pieces.size() <= room_ || room == 1) {
      return work + AddRows(part, /*split=*/!first || rest->begin < rest->end, pieces);
    }
    room -= std::min(room - 1, pieces.size() - room_);
  }
}

// A sentence of a draft without the forced prefix. A piece of the draft may be two pieces where the
// prefix ends, or the reverse. Empty if the prefix ends inside a piece.
std::vector<int> RowMaker::DraftAfter(const std::vector<int>& forced, const Target& target,
                                      std::string_view draft) const {
  constexpr size_t kMostOthers = 4;  // pieces
  std::vector<int> ids = tokenizer_.TargetPiecesOf(draft);
  const auto begins = [&](size_t count) {
    return tokenizer_.Text(ids.data(), count) == Stripped(target.wanted.prefix);
  };
  size_t count = forced.size();
  if (ids.size() < count || !std::equal(forced.begin(), forced.end(), ids.begin())) {
    const size_t end = std::min(ids.size(), forced.size() + kMostOthers);
    count = forced.size() - std::min(forced.size(), kMostOthers);
    while (count <= end && !begins(count)) ++count;
    if (count > end) return {};
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  return ids;
}

// The part of a draft's sentence that can be used.
std::string_view RowMaker::Beginning(std::string_view draft, const Span& sentence) const {
  size_t end = std::min(sentence.end, sentence.begin + MostBytesOfAnswer());
  const auto is_inside_character = [&] { return (draft[end] & 0xC0) == 0x80; };
  while (end > sentence.begin && end < sentence.end && is_inside_character()) --end;
  return draft.substr(sentence.begin, end - sentence.begin);
}

// Sentences of a draft are matched with those of the text in order. Returns the bytes of drafts.
size_t RowMaker::AddRows(const Span& span, bool split, const std::vector<int>& pieces) {
  TextPlan& plan = plans_.back();
  if (plan.sentences.size() == static_cast<size_t>(engine_.max_text_sentences)) {
    RefuseText("it has more sentences than the model's max_text_sentences " +
               std::to_string(engine_.max_text_sentences));
  }
  planned_ += plan.targets.size();
  if (planned_ > static_cast<size_t>(engine_.max_request_rows)) {
    RefuseText(
        "up to here the request has more sentences times target languages than the model's "
        "max_request_rows " +
        std::to_string(engine_.max_request_rows));
  }
  PlannedSentence& sentence = plan.sentences.emplace_back();
  sentence.span = span;
  sentence.split = split;
  // A sentence that is empty in one language is empty in all.
  sentence.sent = !plan.targets.empty() && !pieces.empty();
  sentence.first_row = made_;
  size_t drafted = 0;
  for (size_t i = 0; sentence.sent && i < targets_.size(); ++i, ++made_) {
    Target& target = targets_[i];
    const std::vector<int> forced = std::exchange(target.forced, {});
    MadeRow row{target.frame.Around(pieces), target.prefix, {}, i, plans_.size() - 1, span.begin};
    row.prefix.insert(row.prefix.end(), forced.begin(), forced.end());
    if (!split && next_ < target.drafts.size()) {
      const std::string_view draft = Beginning(target.wanted.draft, target.drafts[next_]);
      row.draft = DraftAfter(forced, target, draft);
      drafted += draft.size();
    }
    sentence.input_tokens.push_back(row.source.size());
    rows_.push_back(std::move(row));
  }
  return drafted;
}

void RowMaker::ForgetRows() { rows_.clear(); }

std::string RowMaker::Row(size_t row) const {
  const MadeRow& made = rows_[row];
  const TextPlan& plan = plans_[made.text];
  const std::string& target = plan.targets[made.target];
  return std::string(tensor::kTextInput) + ", row " + std::to_string(made.text) +
         ", the sentence at byte " + std::to_string(made.begin) +
         (target.empty() ? "" : " into " + target);
}

std::string RowMaker::Draft(size_t row) const {
  const MadeRow& made = rows_[row];
  return std::string(tensor::kDraft) + ", row " + std::to_string(made.text) + ", value " +
         std::to_string(made.target);
}

std::vector<RowInput> RowMaker::Rows() const {
  std::vector<RowInput> rows;
  rows.reserve(rows_.size());
  for (const MadeRow& row : rows_) {
    rows.push_back({ViewOf(row.source), ViewOf(row.prefix), ViewOf(row.draft)});
  }
  return rows;
}

}  // namespace ct2triton

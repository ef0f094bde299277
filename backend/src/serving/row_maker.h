// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/engine_options.h"
#include "config/tensor_table.h"
#include "rows/id_view.h"
#include "rows/row_names.h"
#include "serving/text_plan.h"
#include "text/segmenter.h"
#include "text/tokenizer.h"

namespace ct2triton {

// Makes rows from the texts of one request, sentence by sentence, and records their origin. Each
// sentence is tokenized once for all of its targets. Work is counted in bytes of text.
class RowMaker : public RowNames {
 public:
  // `longest_source`: ids of a row; a longer sentence is cut. All others outlive it.
  RowMaker(const Tokenizer& tokenizer, const EngineOptions& engine, Split split,
           size_t longest_source)
      : tokenizer_(tokenizer), engine_(engine), split_(split), longest_(longest_source) {}

  // Starts the next text. An empty language: not given. The strings of `targets` must live until
  // the text's last sentence. This and AddSentence return the amount of work, and throw
  // Error(kInvalidArgument).
  size_t Begin(std::string text, const std::string& source,
               const std::vector<WantedTarget>& targets);
  // Whether all sentences of the text are done.
  bool whole() const { return next_ == spans_.size(); }
  // Makes the rows of the next sentence of the text, or of its first part.
  size_t AddSentence();

  std::vector<RowInput> Rows() const;  // not forgotten ones; views of this object's memory
  void ForgetRows();
  std::vector<TextPlan> TakePlans() { return std::move(plans_); }

  // Of rows that were not forgotten.
  std::string Row(size_t row) const override;
  std::string Source(size_t row) const override { return Row(row); }
  std::string Prefix(size_t row) const override { return Row(row); }
  std::string Draft(size_t row) const override;

 private:
  struct MadeRow {
    std::vector<int> source;
    std::vector<int> prefix;
    std::vector<int> draft;
    size_t target;  // index of the target
    size_t text;    // index of the text
    size_t begin;   // byte offset of the sentence in the text
  };
  struct Target {
    std::vector<int> prefix;  // IDs that name the language
    Frame frame;
    std::vector<int> forced;  // forced IDs after `prefix`, in the first row
    WantedTarget wanted;
    std::vector<Span> drafts;  // sentences of the draft, at most as many as the text's
  };

  [[noreturn]] void RefuseText(const std::string& what,
                               const char* input = tensor::kTextInput) const;
  void CheckText(const char* input, std::string_view text) const;
  Target TargetOf(const WantedTarget& wanted, const TextPlan& plan) const;
  std::vector<int> DraftAfter(const std::vector<int>& forced, const Target& target,
                              std::string_view draft) const;
  std::string_view TextOf(const Span& span) const;
  size_t AddPart(Span* rest, bool first);
  size_t AddRows(const Span& span, bool split, const std::vector<int>& pieces);
  size_t MostBytesOfAnswer() const;
  std::string_view Beginning(std::string_view draft, const Span& sentence) const;

  const Tokenizer& tokenizer_;
  const EngineOptions& engine_;
  const Split split_;
  const size_t longest_;
  std::vector<TextPlan> plans_;
  std::vector<Span> spans_;      // sentences of the current text
  size_t next_ = 0;              // next of spans_
  bool cutting_ = false;         // it is too long; spans_[next_] is its uncut rest
  std::vector<Target> targets_;  // of that text
  size_t room_ = 0;              // room for pieces in a row of every target
  std::vector<MadeRow> rows_;
  size_t made_ = 0;     // rows made, including forgotten ones
  size_t planned_ = 0;  // rows made, including empty ones
};

}  // namespace ct2triton

// SPDX-License-Identifier: Apache-2.0
//
// The files of a tokenizer, damaged, and texts through what they make: a folder is read or refused
// with a sentence, and whatever it says, any text has a row, and any ids have a text. Texts are cut
// and lose nothing.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fuzz.h"
#include "text/added_tokens.h"
#include "text/code_points.h"
#include "text/segmenter.h"
#include "text/tokenizer.h"

namespace {

namespace fs = std::filesystem;
using namespace ct2triton;
using fuzz::Require;

constexpr size_t kLongestModel = 100'000;

void Write(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
}

std::string Languages(const std::string& family, FuzzedDataProvider* data) {
  const auto id = [&] { return std::to_string(data->ConsumeIntegralInRange(-1, 40)); };
  const auto flag = [&] { return std::string(data->ConsumeBool() ? "true" : "false"); };
  static const std::string kBeside[] = {"always", "first", "words", ""};
  static const std::string kTokens[] = {"aa", "a", "▁b", " ", "é", "<t>"};
  std::string added;
  for (int i = data->ConsumeIntegralInRange(0, 3); i > 0; --i) {
    added += std::string(added.empty() ? "" : ",") + R"({"content":")" +
             data->PickValueInArray(kTokens) + R"(","id":)" + id() + R"(,"special":)" + flag() +
             R"(,"lstrip":)" + flag() + R"(,"rstrip":)" + flag() + R"(,"single_word":)" + flag() +
             R"(,"normalized":)" + flag() + "}";
  }
  return R"({"format":1,"family":")" + family + R"(","tokenizer_size":)" + id() + R"(,"unk_id":)" +
         id() + R"(,"end_ids":[)" + id() + R"(],"special_ids":[)" + id() +
         R"(],"source_required":false,"target_required":false,"languages":[],"added_tokens":[)" +
         added + R"(],"beside_added_tokens":")" + data->PickValueInArray(kBeside) + R"("})";
}

// A folder of a family; one of its files is what the fuzzer made.
void WriteFolder(const fs::path& folder, FuzzedDataProvider* data) {
  static const std::string kFamilies[] = {"t5", "nllb", "m2m100", "marian", "pieces"};
  const std::string family = data->PickValueInArray(kFamilies);
  const bool any_rules = data->ConsumeIntegralInRange(0, 7) == 0;
  const std::string rules =
      any_rules ? data->ConsumeRandomLengthString(2000) : Languages(family, data);
  const std::string list = data->ConsumeRandomLengthString(200);
  const std::string model = data->ConsumeRemainingBytesAsString().substr(0, kLongestModel);
  Write(folder / "languages.json", rules);
  Write(folder / "vocab.json", list);
  Write(folder / "shared_vocabulary.json", list);
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "source.spm", "target.spm"}) {
    Write(folder / name, model);
  }
}

void CheckTokenizer(FuzzedDataProvider* data) {
  static const fs::path folder = [] {
    const fs::path path =
        fs::temp_directory_path() / ("fuzz_tokenizer-" + std::to_string(getpid()));
    fs::create_directories(path);
    std::atexit([] { fs::remove_all(folder); });
    return path;
  }();
  std::string text = data->ConsumeRandomLengthString(100);
  std::vector<int> ids;
  for (int i = data->ConsumeIntegralInRange(0, 20); i > 0; --i) {
    ids.push_back(data->ConsumeIntegralInRange(-2, 60));
  }
  WriteFolder(folder, data);
  fuzz::Accepted([&] {
    const auto tokenizer = Tokenizer::Load(folder);
    const bool is_text = !InvalidUtf8(text);
    const bool split = fuzz::Accepted([&] {
      const auto row = tokenizer->Source(text, "", "");
      ids.insert(ids.end(), row.begin(), row.end());
    });
    Require(is_text || !split, "bytes that are no text have a row");
    const std::string whole = tokenizer->Text(ids.data(), ids.size());
    for (size_t count = 0; count <= ids.size(); ++count) {
      const std::string settled = tokenizer->SettledText(ids.data(), count);
      Require(whole.compare(0, settled.size(), settled) == 0, "what is settled has changed");
    }
  });
}

void CheckSegments(FuzzedDataProvider* data) {
  static const Split kSplits[] = {Split::kSentences, Split::kLines, Split::kNone};
  const Split split = data->PickValueInArray(kSplits);
  const std::string language = data->ConsumeRandomLengthString(8);
  const size_t most = data->ConsumeIntegralInRange<size_t>(1, 20);
  const std::string text = data->ConsumeRemainingBytesAsString();
  const auto require_space = [&](size_t begin, size_t end) {
    const Span rest = Trimmed(text, {begin, end});
    Require(rest.begin == rest.end, "a piece is lost");
  };
  const auto check = [&](const std::vector<Span>& spans, Span whole) {
    size_t at = whole.begin;
    for (const Span& span : spans) {
      Require(at <= span.begin && span.begin < span.end && span.end <= whole.end, "no range");
      require_space(at, span.begin);
      at = span.end;
    }
    require_space(at, whole.end);
  };
  const auto pieces = Segment(text, language, split);
  check(pieces, {0, text.size()});
  for (const Span& piece : pieces) {
    const auto fitting = [&](std::string_view begin) { return std::min(most, begin.size()); };
    std::vector<Span> parts;
    for (Span rest = piece; rest.begin < rest.end;) {
      parts.push_back(TakePart(text, &rest, most, fitting));
    }
    check(parts, piece);
  }
}

void CheckAddedTokens(FuzzedDataProvider* data) {
  std::vector<AddedToken> tokens;
  for (int i = data->ConsumeIntegralInRange(0, 6); i > 0; --i) {
    AddedToken token;
    token.content = data->ConsumeRandomLengthString(6);
    token.id = i;
    token.lstrip = data->ConsumeBool();
    token.rstrip = data->ConsumeBool();
    token.single_word = data->ConsumeBool();
    tokens.push_back(token);
  }
  const AddedTokens added(tokens);
  const std::string text = data->ConsumeRemainingBytesAsString();
  std::string joined;
  for (const AddedTokens::Part& part : added.Split(text)) {
    Require(!part.text.empty(), "an empty part");
    joined += part.text;
  }
  Require(joined == text, "the parts are not the text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  switch (data.ConsumeIntegralInRange(0, 3)) {
    case 0:
      CheckSegments(&data);
      return 0;
    case 1:
      CheckAddedTokens(&data);
      return 0;
    default:
      CheckTokenizer(&data);
  }
  return 0;
}

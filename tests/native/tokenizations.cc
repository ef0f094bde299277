// SPDX-License-Identifier: Apache-2.0
//
// Makes the rows of a text and counts how often a text model splits text into pieces for that.
// PieceModel::Split is wrapped by the linker.
//
// tokenizations <tokenizer folder> <longest row> <target languages, comma-separated>  < text
#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/engine_options.h"
#include "serving/row_maker.h"
#include "text/piece_model.h"
#include "text/tokenizer.h"

#define SPLIT "_ZNK9ct2triton10PieceModel5SplitESt17basic_string_viewIcSt11char_traitsIcEE"

namespace ct2triton {
namespace {

size_t calls = 0;
size_t bytes = 0;

}  // namespace

std::vector<int> RealSplit(const PieceModel* model, std::string_view text) __asm__("__real_" SPLIT);
std::vector<int> CountedSplit(const PieceModel* model,
                              std::string_view text) __asm__("__wrap_" SPLIT);

std::vector<int> CountedSplit(const PieceModel* model, std::string_view text) {
  ++calls;
  bytes += text.size();
  return RealSplit(model, text);
}

namespace {

std::vector<std::string> Names(const std::string& joined) {
  std::vector<std::string> names;
  std::istringstream stream(joined);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

void Count(const std::string& folder, size_t longest, const std::string& targets,
           const std::string& text) {
  const auto tokenizer = Tokenizer::Load(folder);
  const EngineOptions engine;
  RowMaker maker(*tokenizer, engine, Split::kSentences, longest);
  calls = bytes = 0;
  const std::vector<std::string> names = Names(targets);
  std::vector<WantedTarget> wanted;
  for (const std::string& name : names) wanted.push_back({name, "", ""});
  maker.Begin(text, "eng_Latn", wanted);
  while (!maker.whole()) maker.AddSentence();
  std::printf("{\"calls\": %zu, \"bytes\": %zu, \"rows\": %zu}\n", calls, bytes,
              maker.Rows().size());
}

}  // namespace
}  // namespace ct2triton

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: tokenizations <folder> <longest row> <targets> < text\n");
    return 2;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  ct2triton::Count(arguments[1], std::stoul(arguments[2]), arguments[3], text);
  return 0;
}

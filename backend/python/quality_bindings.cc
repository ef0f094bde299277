// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the quality judge. ct2-prepare computes its statistics from what they return.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.h"
#include "quality/gaps.h"
#include "quality/judge.h"
#include "quality/statistics.h"
#include "quality/token_text.h"
#include "quality/words.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

py::dict Describe(const Verdict& verdict) {
  py::dict doubts;
  py::list raised;
  py::list missing;
  for (size_t i = 0; i < kFlags; ++i) {
    const Flag flag{i};
    if (verdict.Raises(flag)) raised.append(FlagName(flag));
    if (const auto doubt = verdict.doubt(flag)) {
      doubts[FlagName(flag)] = *doubt;
    } else {
      missing.append(FlagName(flag));
    }
  }
  py::dict described;
  described["quality"] = verdict.Quality();
  described["flags"] = raised;
  described["not_computed"] = missing;
  described["doubts"] = doubts;
  described["json"] = verdict.Json();
  return described;
}

Verdict VerdictOf(const std::map<std::string, double>& doubts) {
  Verdict verdict;
  for (size_t i = 0; i < kFlags; ++i) {
    const auto doubt = doubts.find(FlagName(Flag{i}));
    if (doubt != doubts.end()) verdict.Set(Flag{i}, doubt->second);
  }
  return verdict;
}

using Aligned = std::vector<std::array<size_t, 4>>;  // begin and end in the source, in the target

Alignment AlignmentOf(const Aligned& aligned) {
  Alignment alignment;
  for (const auto& [from, to, begin, end] : aligned) {
    alignment.spans.push_back({{from, to}, {begin, end}});
  }
  alignment.whole = true;
  return alignment;
}

Gaps GapsOfTokens(const std::vector<std::string>& source, const std::vector<std::string>& target,
                  const std::vector<int64_t>& positions) {
  std::vector<Span> source_places;
  std::vector<Span> target_places;
  const std::string from = TokenText({source.begin(), source.end()}, &source_places);
  const std::string to = TokenText({target.begin(), target.end()}, &target_places);
  return FindGaps(ReadText(from).words, ReadText(to).words,
                  {source_places, target_places, positions});
}

}  // namespace

void BindQuality(py::module_& module) {
  py::class_<Judge>(module, "Judge", "Tells what looks wrong in a translation.")
      .def(py::init([](const std::string& statistics) {
             return Judge(statistics.empty() ? QualityStatistics()
                                             : ParseQualityStatistics(statistics));
           }),
           py::arg("statistics") = "")
      .def(
          "judge",
          [](const Judge& judge, const std::string& source, const std::string& target,
             const std::string& language, std::optional<double> score,
             const std::string& source_language, const std::optional<Aligned>& aligned) {
            const Alignment alignment = AlignmentOf(aligned.value_or(Aligned()));
            return Describe(judge.Of({source, target, language, score, source_language,
                                      aligned ? &alignment : nullptr}));
          },
          py::arg("source"), py::arg("target"), py::arg("language") = "",
          py::arg("score") = std::nullopt, py::arg("source_language") = "",
          py::arg("aligned") = std::nullopt);
  module.def(
      "better_verdict",
      [](const std::map<std::string, double>& one, const std::map<std::string, double>& other) {
        return VerdictOf(one).BetterThan(VerdictOf(other));
      },
      py::arg("one"), py::arg("other"), "Compares verdicts by their doubts.");
  module.def("quality_length", &LengthRatio, py::arg("source"), py::arg("target"));
  module.def(
      "quality_copied",
      [](const std::string& source, const std::string& target,
         const std::map<std::string, double>& of_target) {
        return CopiedShare(ReadText(source), ReadText(target), of_target);
      },
      py::arg("source"), py::arg("target"), py::arg("of_target") = std::map<std::string, double>());
  module.def(
      "quality_gaps",
      [](const std::vector<std::string>& source, const std::vector<std::string>& target,
         const std::vector<int64_t>& positions) {
        const Gaps gaps = GapsOfTokens(source, target, positions);
        return py::make_tuple(gaps.uncovered, gaps.invented);
      },
      py::arg("source_tokens"), py::arg("target_tokens"), py::arg("positions"));
  module.def(
      "quality_words",
      [](const std::string& text) {
        std::vector<std::string> words;
        for (const Word& word : Words(text)) words.push_back(word.text);
        return words;
      },
      py::arg("text"));
  module.def(
      "token_text",
      [](const std::vector<std::string>& tokens) {
        return TokenText({tokens.begin(), tokens.end()});
      },
      py::arg("tokens"));
}

}  // namespace ct2triton

// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "error.h"
#include "text/segmenter.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

using Range = std::pair<size_t, size_t>;

std::vector<Range> Ranges(const std::vector<Span>& spans) {
  std::vector<Range> ranges;
  for (const Span& span : spans) ranges.emplace_back(span.begin, span.end);
  return ranges;
}

Split SplitOf(const std::string& name) {
  if (name == "sentences") return Split::kSentences;
  if (name == "lines") return Split::kLines;
  if (name == "none") return Split::kNone;
  throw Error(ErrorCode::kInvalidArgument,
              "split \"" + name + "\" is not known; give one of sentences, lines, none");
}

}  // namespace

// Texts are UTF-8 bytes objects, and places in them are byte offsets.
void BindSegmenter(py::module_& module) {
  module.def(
      "segment",
      [](const py::bytes& text, const std::string& language, const std::string& split) {
        return Ranges(Segment(std::string_view(text), language, SplitOf(split)));
      },
      py::arg("text"), py::arg("language") = "", py::arg("split") = "sentences");
  module.def(
      "cut_to_fit",
      [](const py::bytes& text, size_t lookahead, const py::function& fitting) {
        const std::string_view view(text);
        std::vector<Span> parts;
        for (Span rest{0, view.size()}; rest.begin < rest.end;) {
          parts.push_back(TakePart(view, &rest, lookahead, [&](std::string_view begin) {
            return fitting(py::bytes(begin.data(), begin.size())).cast<size_t>();
          }));
        }
        return Ranges(parts);
      },
      py::arg("text"), py::arg("lookahead"), py::arg("fitting"));
  module.def(
      "gap_in_target",
      [](const py::bytes& gap, const std::string& target) {
        return py::bytes(GapInTarget(std::string_view(gap), target));
      },
      py::arg("gap"), py::arg("target"));
}

}  // namespace ct2triton

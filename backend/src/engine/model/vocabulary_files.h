// SPDX-License-Identifier: Apache-2.0
//
// Reads the files of a model directory that limit the decoder's candidates: vmap.txt,
// shortlists.json.
#pragma once

#include <optional>
#include <string>

#include "engine/model/weights.h"

namespace ct2triton {

// Throws if vmap.txt has no line, because CTranslate2 reads the first line unchecked.
void RequireMapLine(const std::string& directory);

// None if there is no vmap.txt.
std::optional<VocabularyMap> ReadVocabularyMap(const Weights& weights);

// Empty if there is no shortlists.json. Throws Error if there is a vocabulary map too.
VocabularyLists ReadVocabularyLists(const Weights& weights);

}  // namespace ct2triton

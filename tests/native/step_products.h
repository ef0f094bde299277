// SPDX-License-Identifier: Apache-2.0
//
// The products of a decoder step: their shapes, and how the experiments of this folder time them.
// Needs nothing but the standard library.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace ct2triton {

using ProductShapes = std::vector<std::pair<int64_t, int64_t>>;  // outputs, inputs

// Of a decoder of these sizes: attention to itself and to the source, feed-forward, vocabulary.
inline ProductShapes StepShapes(int64_t width, int64_t layers, int64_t inner, int64_t vocabulary) {
  ProductShapes shapes;
  for (int64_t layer = 0; layer < layers; ++layer) {
    shapes.insert(shapes.end(), {{3 * width, width},
                                 {width, width},
                                 {width, width},
                                 {width, width},
                                 {inner, width},
                                 {width, inner}});
  }
  shapes.emplace_back(vocabulary, width);
  return shapes;
}

// Of a decoder whose sizes are arguments of a program, in that order; without them, of the usual
// ones.
inline ProductShapes StepShapes(int count, char** arguments) {
  const auto size = [&](int at, int64_t usual) {
    return count > at ? std::atoll(arguments[at]) : usual;
  };
  return StepShapes(size(1, 512), size(2, 6), size(3, 2048), size(4, 32'000));
}

// Multiply-adds of a step of one row, which is also how many weights it has.
inline int64_t Weights(const ProductShapes& shapes) {
  int64_t weights = 0;
  for (const auto& [outputs, inputs] : shapes) weights += outputs * inputs;
  return weights;
}

// Of five runs.
template <typename Run>
double Median(const Run& run) {
  std::vector<double> values;
  for (int turn = 0; turn < 5; ++turn) values.push_back(run());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Milliseconds of a step, which is run so many times after one that warms up.
template <typename Step>
double Time_ms(int steps, const Step& step) {
  step();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) step();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / steps;
}

}  // namespace ct2triton

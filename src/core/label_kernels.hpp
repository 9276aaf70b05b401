// The inner loops of label graphs. One source (label_kernels.inc) is compiled once per instruction set, as those of
// vector.hpp are; only whole numbers are added up here.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace ilhash {

struct LabelKernels {
  // The next n numbers of a Random that stands at `counter`.
  void (*random_numbers)(uint64_t counter, size_t n, uint64_t* out);

  // rows[i] has bit j or rows[j] has bit i: both have it. n rows of n_words words.
  void (*symmetrise)(uint64_t* rows, size_t n, size_t n_words);

  // The symmetric graph of choices, without writing it: how many neighbours point i has in each class, and how many of
  // these are in `plus`, to count[i * n_classes + c] and n_plus likewise. Word w of the choices of point i stands at
  // words[w * stride + i], of points behind n there are none up to a multiple of 64. Class c is the points from
  // class_begin[c] on; nobody chose inside his own class.
  void (*tally)(const uint64_t* words, size_t n, size_t stride, const uint64_t* plus, const uint32_t* class_begin,
                size_t n_classes, uint16_t* count, uint16_t* n_plus);

  // The number of bits of each row, and of those that are also in `plus`.
  void (*count_rows)(const uint64_t* rows, size_t n, size_t n_words, const uint64_t* plus, uint32_t* count,
                     uint32_t* n_plus);
};

const LabelKernels& label_kernels();  // of the instruction set that vector_level() names

}  // namespace ilhash

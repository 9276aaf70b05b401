// The graph of labels without its arcs written down, for z-steps that need no more than this.
//
// Blocks are the classes, so attracting arcs stay inside a class, where they are dense: a matrix of bits. Repelling
// arcs lead from class to class, and as long as classes are on one side each, all that matters of them is how many of a
// point's arcs lead into each class (see label_zstep.hpp). So what is kept is whom each point chose, and both
// directions are only counted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "buffer.hpp"

namespace ilhash {

struct LabelGraph {
  // Points sorted by class; see graph_from_classes, which has the same arcs for the same arguments.
  LabelGraph(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar, uint64_t seed);

  // Whether bits are no larger than arcs, or hardly.
  static bool suits(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar);

  uint32_t n_classes() const { return static_cast<uint32_t>(class_sizes.size()); }
  uint32_t size(uint32_t c) const { return class_sizes[c]; }
  size_t n_words_of(uint32_t c) const;  // of a row of bits inside a class

  uint32_t n = 0, similar, dissimilar;
  uint64_t seed;
  std::vector<uint32_t> class_sizes, class_begin, block;  // block: the class of each point
  std::vector<size_t> rows_begin;                         // where the rows of a class begin in `attract`
  Buffer<uint64_t> attract;                               // symmetric

  // Whom a point chose in other classes, as bits: word w of point i stands at chosen_bits[w * stride + i], so that 64
  // of them are one behind the other. Where these would be many, as numbers.
  size_t stride = 0;
  Buffer<uint64_t> chosen_bits;
  std::vector<uint32_t> chosen_begin;
  Buffer<uint16_t> chosen;
};

// How many neighbours each point has in each of the other classes, and how many of these are on the side of +1 in z.
struct ClassTally {
  ClassTally(const LabelGraph& graph, const int8_t* z);

  Buffer<uint16_t> count, n_plus;  // by point, then class
};

}  // namespace ilhash

// Exact minimum cut inside one class of a label graph: mincut.hpp's pushes and waves, on rows of bits.
//
// All capacities are 1 in either direction, so the flow between two points is -1, 0 or +1: two rows of bits for each
// point say along which arcs a unit went out, and along which one came in. An arc can carry more unless one went out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mincut.hpp"

namespace ilhash {

// The points of one class, by their numbers inside it.
struct BitNetwork {
  uint32_t n;
  size_t n_words;
  const uint64_t* arcs;  // a symmetric matrix without diagonal
  uint64_t* went_out;    // of the size of arcs; empty at first, and kept from one cut to the next
  uint64_t* came_in;
  int32_t* excess;  // what pulls at a point less what has flowed out; changed by the cut
};

// The cut; where it is mixed nobody needs to know which points are on which side (the general path finds out).
BlockCut cut_class(const BitNetwork& net);

}  // namespace ilhash

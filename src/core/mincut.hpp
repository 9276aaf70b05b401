// Exact minimum cut inside one block, by a pseudoflow in waves.
//
// The block's problem: minimise  -sum_n d_n z_n - sum_{n<m} w_nm z_n z_m  over z in {-1,+1}, all w_nm >= 0.
// Points with d_n > 0 hold excess, points with d_n < 0 a deficit, and w_nm is the capacity between n and m in either
// direction. We push excess towards deficits until one side is used up or cut off; the points that can no longer reach
// a deficit then form the side of +1. First every excess is cancelled against deficits one arc away, which settles
// most of it on dense graphs; then waves follow: distances to the deficits by breadth-first search, and pushes from
// the farthest point inwards, each along arcs that come one step closer.
//
// Flows are kept between calls. When the field d changes, what remains is d minus the net flow that already left the
// point, so the next cut of the same block starts warm.
#pragma once
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace ilhash {

// The arcs that carry flow: attracting arcs with both ends in one block, [begin[n], end[n]) of point n.
// What an arc and its opposite can still carry is twice their weight together, so one of them tells of both. Where the
// opposite arc stands is searched when something is pushed: pushes are few compared with arcs, and an index of all
// opposites would cost more to write down than the whole cut.
template <class Index, class Capacity, class Flow>
struct FlowNetwork {
  const uint32_t* begin;
  const uint32_t* end;
  const Index* target;
  const Capacity* weight;  // nullptr: all are 1
  bool sorted;             // whether the arcs of each point are sorted by target
  Buffer<Capacity> residual;
  std::vector<Flow> excess;         // of the block at hand: d minus what has flowed out
  std::vector<int32_t> to_deficit;  // arcs on the shortest way to a deficit, kCutOff if there is none
  std::vector<Index> queue;
};

constexpr int32_t kCutOff = -1;

// kMixed: a point is +1 exactly where to_deficit is kCutOff.
enum class BlockCut : uint8_t { kAllPlus, kAllMinus, kMixed };

template <class Index, class Capacity, class Flow>
BlockCut cut_block(FlowNetwork<Index, Capacity, Flow>& net, const Index* points, uint32_t n_points);

}  // namespace ilhash

// Graphs from what Python may hand over: every arc has its opposite, and no block a repelling arc.
#include "drawing.hpp"
#include "graphs.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

void draw_points(Input& in) {
  std::vector<int64_t> row_begin{0};
  std::vector<int32_t> columns;
  const size_t n = in.below(20);
  for (size_t i = 0; i < n; ++i) {
    for (size_t own = in.below(4); own > 0; --own) columns.push_back(static_cast<int32_t>(in.below(n)));
    row_begin.push_back(static_cast<int64_t>(columns.size()));
  }
  in.spoil(row_begin);
  in.spoil(columns);
  const uint64_t n_points = check_neighbourhoods(span(row_begin), span(columns));
  const auto order = neighbourhood_order(row_begin.data(), columns.data(), n_points, in.take<uint64_t>(), in.below(40));
  std::vector<bool> seen(n_points, false);
  for (const int64_t point : order) {
    expect(!seen[static_cast<size_t>(point)], "no point comes twice");
    seen[static_cast<size_t>(point)] = true;
  }
}

void draw_permuted(Input& in) {
  const auto n = in.flag() ? in.take<uint64_t>() : in.below(300), start = in.flag() ? in.take<uint64_t>() : 0;
  const uint64_t seed = in.take<uint64_t>(), count = in.flag() ? in.take<uint64_t>() : in.below(20);
  check_permuted(n, start, count);
  if (count > 1000) return;  // right, but long
  for (const int64_t point : permuted(n, seed, start, count))
    expect(point >= 0 && static_cast<uint64_t>(point) < n, "points are points");
}

void examine(const SignedGraph& graph) {
  const std::vector<uint32_t> block = grow_blocks(graph);
  graph.visit([&](const auto& g) {
    for (const bool attracts : {true, false}) {
      const auto& arcs = attracts ? g.attract : g.repel;
      for (uint32_t n = 0; n < g.n; ++n)
        for (uint32_t a = arcs.begin[n]; a < arcs.end[n]; ++a) {
          const uint32_t m = arcs.target[a];
          expect(m < g.n && m != n, "arcs lead to other points");
          const auto* const first = arcs.target.data() + arcs.begin[m];
          const auto* const last = arcs.target.data() + arcs.end[m];
          expect(std::count(first, last, n) == 1, "arcs have one opposite");
          expect(attracts || block[n] != block[m], "no block holds a repelling arc");
        }
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    switch (in.take<uint8_t>() % 8) {
      case 0: return draw_points(in);
      case 1: return draw_permuted(in);
      default: examine(any_graph(in));
    }
  });
}

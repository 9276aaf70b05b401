// Checks of what comes from outside: from Python, from files, from a fuzzer. Each throws std::invalid_argument, which
// Python sees as a ValueError, and none knows of Python; the kernels take for granted what is checked here.
//
// Two kinds. Those of sizes and shapes cost nothing and are made at every call. Those that read the data are made at
// every call too where the work costs more than they do; check_segment and check_trees are for data that is searched or
// walked again and again, and are called once, when an array is first taken from its file.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "boosting.hpp"
#include "cut.hpp"
#include "scan.hpp"
#include "tree_margins.hpp"
#include "trees.hpp"

namespace ilhash {

// Numbers one behind the other, as an array of one axis has them.
template <class T>
struct Span {
  const T* data = nullptr;
  size_t size = 0;

  const T* begin() const { return data; }
  const T* end() const { return data + size; }
  const T& operator[](size_t i) const { return data[i]; }
};

// A table by rows, without gaps.
template <class T>
struct Grid {
  const T* data = nullptr;
  size_t n_rows = 0, n_columns = 0;

  Span<T> flat() const { return {data, n_rows * n_columns}; }
};

template <class T>
using Maybe = std::optional<T>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// For the functions fault_of, which return nullptr where nothing is wrong.
inline void require_no_fault(const char* fault) { require(fault == nullptr, fault); }

// "what, got one in 3 of 10 places, the first at 7"
[[noreturn]] void refuse(const char* message, const char* got, size_t n_bad, size_t n, size_t first);

// message: what must hold of all values; `bad` finds those of which it does not.
template <class T, class Bad>
void require_each(Span<T> values, const Bad& bad, const char* message, const char* got) {
  size_t n_bad = 0, first = 0;
  for (size_t i = 0; i < values.size; ++i)
    if (bad(values[i])) first = n_bad++ ? first : i;
  if (n_bad) refuse(message, got, n_bad, values.size, first);
}

// All values must lie in 0 .. limit - 1.
template <class T>
void require_below(Span<T> values, size_t limit, const char* message) {
  uint64_t largest = 0;  // without a branch, so that the loop is vectorised; a negative value becomes a very large one
  for (size_t i = 0; i < values.size; ++i) largest = std::max(largest, static_cast<uint64_t>(values[i]));
  if (values.size && largest >= limit)
    require_each(values, [limit](T v) { return static_cast<uint64_t>(v) >= limit; }, message, "another number");
}

void require_signs(Span<int8_t> values, const char* message);

// Counts that a vector is made of: beyond that no machine has memory, and sizes in bytes would overflow.
constexpr uint64_t kMostEntries = uint64_t{1} << 48;

// Returns the number of rows of a matrix in CSR form; `message` is for a row_begin that ends elsewhere than its
// entries.
template <class T>
size_t require_csr(Span<T> row_begin, size_t n_entries, const char* message) {
  require(row_begin.size > 0, "row_begin must have one entry more than there are rows");
  const size_t n = row_begin.size - 1;
  require(row_begin[0] == 0 && std::is_sorted(row_begin.begin(), row_begin.end()),
          "row_begin must begin at 0 and must not descend");
  require(static_cast<uint64_t>(row_begin[n]) == n_entries, message);
  require(n < UINT32_MAX, "there must be fewer than 2^32 - 1 points");
  return n;
}

// ------------------------------------------------------------------------------------------ drawing

void check_permuted(uint64_t n, uint64_t start, uint64_t count);
uint64_t check_neighbourhoods(Span<int64_t> row_begin, Span<int32_t> columns);  // the number of points
void check_sources(uint64_t n, uint64_t count);

// ------------------------------------------------------------------------------------------ graphs and the z-step

void check_classes(const std::vector<uint32_t>& class_sizes);
uint32_t check_label_sets(Span<uint32_t> row_begin, Span<uint32_t> labels, uint32_t n_labels);
void check_neighbours(Grid<uint32_t> neighbours);
uint32_t check_couplings(Span<uint32_t> row_begin, Span<uint32_t> columns, Span<double> couplings);
uint32_t check_signed_pairs(Span<uint32_t> row_begin, Span<uint32_t> columns, Span<int8_t> signs);
void check_bits(Span<int8_t> z, size_t n_points, const char* length, const char* values);
void check_field(Span<double> field, size_t n_points);

// ------------------------------------------------------------------------------------------ matrices

void check_gather(size_t n_rows, size_t n_columns, Span<int64_t> rows, const Maybe<Span<int32_t>>& columns,
                  size_t n_origin, size_t out_rows, size_t out_columns);
void check_subsets(size_t n_rows, size_t n_columns, Grid<float> weights, Grid<int32_t> columns, size_t n_bias,
                   size_t out_rows, size_t out_columns);

// Shapes, a positive C, and targets of -1 and +1. Whatever else the numbers are, a search ends, with what it found or
// with kSlow.
void check_svm(size_t n_rows, size_t n_columns, size_t n_shift, size_t n_factor, Span<float> y, double C,
               Grid<float> inverse);

// ------------------------------------------------------------------------------------------ codes

// Tiles as an array of three axes.
struct TileArray {
  const uint8_t* data = nullptr;
  size_t n_tiles = 0, m = 0, codes_per_tile = 0;
};

struct SegmentArrays {
  TileArray tiles;
  size_t n_codes = 0, n_bits = 0;
  Maybe<Span<uint32_t>> offsets, rows;
  Maybe<Grid<uint8_t>> pivots;
  Maybe<Grid<uint16_t>> ranges;  // rows of (pivot, nearest, farthest)
};

// What a scan needs, from sizes and shapes alone. The kernels bear any content of the arrays: posting lists that lead
// outside of the rows are refused when they are met, and neither pivots nor padding can make a distance leave its
// counters. What such a base answers is of no use, though.
CodeBase base_of(const SegmentArrays& segment, bool ordered);

// That the arrays are what an index writes. Throws std::invalid_argument otherwise. Guarantees, beyond what base_of
// says of the shapes:
//  - no code and no pivot has a bit set behind n_bits;
//  - offsets begin at 0, ascend (no posting list is empty), and end at the number of rows;
//  - rows are a permutation of 0 .. n - 1, ascending within each list, and without pivots the first rows of the lists
//    ascend from code to code;
//  - ranges name pivots that there are, and distances nearest <= farthest <= n_bits.
// Not checked: that the codes of a block lie within its range, and that codes are distinct. A range that lies hides
// items, as other codes would.
void check_segment(const SegmentArrays& segment);

void check_codes(Grid<uint8_t> codes);
void check_to_tiles(Grid<uint8_t> codes, const Maybe<Span<uint32_t>>& rows, TileArray tiles);
void check_from_tiles(TileArray tiles, Span<uint32_t> codes, size_t n_out, size_t width);
void check_codes_to_order(Grid<uint8_t> codes, Span<uint32_t> rows, size_t n_bits);
void check_queries(const CodeBase& base, Grid<uint8_t> queries);
void check_weights(const CodeBase& base, Grid<uint8_t> queries, Grid<float> weights);

// ------------------------------------------------------------------------------------------ precision, bit by bit

struct CutPool {
  WordCodes base, queries;
};
void check_cut_bits(const CutCounts& counts, Span<uint8_t> base_bits, Span<uint8_t> query_bits);
CutPool check_cut_pool(const CutCounts& counts, Grid<uint64_t> pool, Grid<uint64_t> queries, size_t n_bits);

// ------------------------------------------------------------------------------------------ trees

// That a table of trees is sound: columns of one length below 2^31, roots in the table, features below n_features,
// leaves that lead to themselves and other nodes whose children both stand behind them (so there is no cycle), no
// way from a root to a leaf longer than max_depth steps, no threshold or value that is not a number, values finite.
void check_trees(const TreeTable& table, size_t n_features, size_t max_depth);

// That tables are without fault and their columns those of rows of n_features.
void check_tree_sources(const std::vector<TreeMargins::Source>& sources, size_t n_features);

// That each of the features has at most 255 edges, finite ones that ascend.
void check_bin_edges(Span<uint32_t> edge_begin, Span<double> edges, size_t n_features);

BinnedFeatures check_boosting(Grid<uint8_t> bins, Span<uint32_t> edge_begin, Span<double> edges, Span<int8_t> z,
                              const BoostingOptions& options);

}  // namespace ilhash

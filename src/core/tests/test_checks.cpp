// Tests of the checks: what is right passes, and each way of being wrong is refused. Arrays have exactly the size they
// must have, so that under AddressSanitizer a check that reads too far is found, too.
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "checks.hpp"
#include "graph.hpp"
#include "pair_loss.hpp"
#include "random.hpp"

using namespace ilhash;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class Work>
bool refuses(const Work& work) {
  try {
    work();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

template <class T>
Span<T> span(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

// ------------------------------------------------------------------------------------------ drawing, graphs

void test_csr() {
  const auto neighbourhoods = [](std::vector<int64_t> row_begin, std::vector<int32_t> columns) {
    return refuses([&] { check_neighbourhoods(span(row_begin), span(columns)); });
  };
  CHECK(!neighbourhoods({0, 1, 2}, {1, 0}));
  CHECK(!neighbourhoods({0}, {}));
  CHECK(neighbourhoods({}, {}));
  CHECK(neighbourhoods({0, 5, 2}, {1, 0}));  // up and down again: entries 2 .. 4 do not exist
  CHECK(neighbourhoods({0, -1, 2}, {1, 0}));
  CHECK(neighbourhoods({1, 1, 2}, {1, 0}));
  CHECK(neighbourhoods({0, 1, 3}, {1, 0}));
  CHECK(neighbourhoods({0, 1, 2}, {1, 2}));
  CHECK(neighbourhoods({0, 1, 2}, {1, -1}));
  const auto label_sets = [](std::vector<uint32_t> row_begin, std::vector<uint32_t> labels, uint32_t n_labels) {
    return refuses([&] { check_label_sets(span(row_begin), span(labels), n_labels); });
  };
  CHECK(!label_sets({0, 2, 2, 3}, {0, 1, 1}, 2));
  CHECK(label_sets({0, 2, 2, 3}, {0, 1, 1}, 1));
  CHECK(label_sets({0, 4, 2, 3}, {0, 1, 1}, 2));
  CHECK(label_sets({0, 2, 2, 4}, {0, 1, 1}, 2));
  CHECK(label_sets({0, 2, 2, 3}, {0, 1, UINT32_MAX}, 2));
}

void test_counts() {
  CHECK(!refuses([] { check_permuted(10, 4, 6); }));
  CHECK(refuses([] { check_permuted(10, 4, 7); }));
  CHECK(refuses([] { check_permuted(10, 11, 0); }));
  CHECK(refuses([] { check_permuted(10, 4, UINT64_MAX); }));
  CHECK(refuses([] { check_permuted(uint64_t{1} << 63, 0, 1); }));
  CHECK(refuses([] { check_permuted(INT64_MAX, 0, INT64_MAX); }));
  CHECK(refuses([] { check_sources(0, 1); }));
  CHECK(refuses([] { check_sources(5, uint64_t{1} << 63); }));
  CHECK(!refuses([] { check_classes({1, 2}); }));
  CHECK(refuses([] { check_classes({1, 0}); }));
  CHECK(refuses([] { check_classes({1u << 31, 1u << 31, 5}); }));  // 5 in 32 bits
}

void test_symmetric() {
  const auto couplings = [](std::vector<uint32_t> row_begin, std::vector<uint32_t> columns, std::vector<double> w) {
    return refuses([&] { check_couplings(span(row_begin), span(columns), span(w)); });
  };
  CHECK(!couplings({0, 1, 3, 4}, {1, 0, 2, 1}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {1, 0, 2, 1}, {2, 3, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {1, 0, 2, 1}, {2, 2, -1}));
  CHECK(couplings({0, 9, 3, 4}, {1, 0, 2, 1}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {1, 0, 3, 1}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {0, 0, 2, 1}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {1, 2, 0, 1}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 3, 4}, {1, 0, 2, 0}, {2, 2, -1, -1}));
  CHECK(couplings({0, 1, 2}, {1, 0}, {kNan, kNan}));
  CHECK(couplings({0, 1, 2}, {1, 0}, {kInfinity, kInfinity}));
  CHECK(couplings({0, 1, 2}, {1, 0}, {0, 0}));
  const std::vector<uint32_t> row_begin{0, 1, 2}, columns{1, 0};
  const std::vector<int8_t> signs{-1, -1}, zeros{0, 0};
  CHECK(!refuses([&] { check_signed_pairs(span(row_begin), span(columns), span(signs)); }));
  CHECK(refuses([&] { check_signed_pairs(span(row_begin), span(columns), span(zeros)); }));
}

void test_neighbours() {
  const auto neighbours = [](std::vector<uint32_t> table, size_t n, size_t k) {
    return refuses([&] { check_neighbours({table.data(), n, k}); });
  };
  CHECK(!neighbours({1, 2, 0, 2, 0, 1}, 3, 2));
  CHECK(neighbours({1, 2, 0, 2, 0, 3}, 3, 2));
  CHECK(neighbours({1, 2, 0, 1, 0, 1}, 3, 2));
  CHECK(neighbours({1, 1, 0, 2, 0, 1}, 3, 2));
  CHECK(neighbours({1, 0, 1, 0}, 2, 2));
  CHECK(neighbours({}, 0, 0));
}

void test_bits_and_field() {
  const auto bits = [](std::vector<int8_t> z, size_t n) {
    return refuses([&] { check_bits(span(z), n, "length", "values"); });
  };
  CHECK(!bits({1, -1}, 2));
  CHECK(bits({1, -1}, 3));
  CHECK(bits({1, 0}, 2));
  CHECK(bits({1, -128}, 2));
  const auto field = [](std::vector<double> values, size_t n) {
    return refuses([&] { check_field(span(values), n); });
  };
  CHECK(!field({0, -1e280}, 2));
  CHECK(field({0}, 2));
  CHECK(field({0, kNan}, 2));
  CHECK(field({0, 1e281}, 2));
}

// A bit that was never added makes agreements larger than the number of bits; the flow would not end.
void test_pair_loss() {
  const std::vector<uint32_t> row_begin{0, 1, 2}, columns{1, 0};
  const std::vector<int8_t> signs{1, 1}, alike{1, 1}, unlike{1, -1};
  PairLoss loss(graph_from_signs(row_begin.data(), columns.data(), signs.data(), 2));
  std::vector<int8_t> z{1, -1};
  CHECK(refuses([&] { loss.remove(alike.data()); }));
  loss.add(alike.data());
  CHECK(refuses([&] { loss.lower(1, {}, z.data()); }));
  CHECK(refuses([&] { loss.lower(PairLoss::kMostBits + 1, {}, z.data()); }));
  CHECK(!refuses([&] { loss.lower(2, {}, z.data()); }));
  loss.remove(unlike.data());
  CHECK(refuses([&] { loss.lower(1, {}, z.data()); }));
}

// ------------------------------------------------------------------------------------------ segments

// 300 codes of 13 bits, 400 rows, two blocks of ranges.
struct Arrays {
  size_t n_codes = 300, n_bits = 13;
  size_t shape[3] = {5, 2, 64};
  std::vector<uint8_t> tiles = std::vector<uint8_t>(5 * 2 * 64, 0xF8);
  std::vector<uint32_t> offsets, rows;
  std::vector<uint8_t> pivots{0xFF, 0xF8, 0, 0};
  std::vector<uint16_t> ranges{0, 1, 13, 1, 0, 0};
  bool with_offsets = true, with_rows = true, with_pivots = false;

  Arrays() {
    for (uint32_t c = 0; c <= n_codes; ++c) offsets.push_back(c + std::min(c, 100u));
    for (uint32_t row = 0; row < 400; ++row) rows.push_back(row);
  }

  SegmentArrays view() const {
    SegmentArrays out;
    out.tiles = {tiles.data(), shape[0], shape[1], shape[2]};
    out.n_codes = n_codes;
    out.n_bits = n_bits;
    if (with_offsets) out.offsets = span(offsets);
    if (with_rows) out.rows = span(rows);
    if (with_pivots) {
      out.pivots = Grid<uint8_t>{pivots.data(), pivots.size() / 2, 2};
      out.ranges = Grid<uint16_t>{ranges.data(), ranges.size() / 3, 3};
    }
    return out;
  }
};

template <class Change>
bool segment_refused(const Change& change) {
  Arrays arrays;
  change(arrays);
  return refuses([&] { check_segment(arrays.view()); });
}

void test_segment() {
  CHECK(!segment_refused([](Arrays&) {}));
  CHECK(!segment_refused([](Arrays& a) { a.with_pivots = true; }));
  CHECK(segment_refused([](Arrays& a) { a.n_codes = 256; }));
  CHECK(segment_refused([](Arrays& a) { a.n_codes = SIZE_MAX; }));
  CHECK(segment_refused([](Arrays& a) { a.n_codes = SIZE_MAX - 63; }));  // no tile, if added up carelessly
  CHECK(segment_refused([](Arrays& a) { a.n_bits = 0; }));
  CHECK(segment_refused([](Arrays& a) { a.n_bits = 17; }));
  CHECK(segment_refused([](Arrays& a) { a.n_bits = SIZE_MAX - 2; }));
  CHECK(segment_refused([](Arrays& a) { a.n_bits = 12; }));  // bit 12 of every code is then padding
  CHECK(segment_refused([](Arrays& a) { a.shape[2] = 32; }));
  CHECK(segment_refused([](Arrays& a) { a.tiles[64 + 7] |= 1; }));
  CHECK(segment_refused([](Arrays& a) { a.tiles.back() |= 4; }));
  CHECK(segment_refused([](Arrays& a) { a.with_rows = false; }));
  CHECK(segment_refused([](Arrays& a) { a.with_offsets = false; }));
  CHECK(segment_refused([](Arrays& a) { a.offsets[0] = 1; }));
  CHECK(segment_refused([](Arrays& a) { a.offsets[5] = a.offsets[4]; }));
  CHECK(segment_refused([](Arrays& a) { a.offsets[5] = UINT32_MAX; }));
  CHECK(segment_refused([](Arrays& a) { a.offsets.back() = 401; }));
  CHECK(segment_refused([](Arrays& a) { a.offsets.pop_back(); }));
  CHECK(segment_refused([](Arrays& a) { a.rows.pop_back(); }));
  CHECK(segment_refused([](Arrays& a) { a.rows[399] = 400; }));
  CHECK(segment_refused([](Arrays& a) { a.rows[399] = 398; }));
  CHECK(segment_refused([](Arrays& a) { std::swap(a.rows[0], a.rows[1]); }));      // within the list of code 0
  CHECK(segment_refused([](Arrays& a) { std::swap(a.rows[398], a.rows[399]); }));  // first rows of the last codes
  const auto by_pivots = [](const auto& change) {
    return segment_refused([&](Arrays& a) {
      a.with_pivots = true;
      change(a);
    });
  };
  CHECK(!by_pivots([](Arrays& a) { std::swap(a.rows[398], a.rows[399]); }));  // only without pivots are codes in order
  CHECK(by_pivots([](Arrays& a) { a.pivots[1] |= 1; }));
  CHECK(by_pivots([](Arrays& a) { a.pivots[3] |= 4; }));
  CHECK(by_pivots([](Arrays& a) { a.pivots.resize(2); }));
  CHECK(by_pivots([](Arrays& a) { a.ranges.resize(3); }));
  CHECK(by_pivots([](Arrays& a) { a.ranges[3] = 2; }));
  CHECK(by_pivots([](Arrays& a) { a.ranges[2] = 14; }));
  CHECK(by_pivots([](Arrays& a) { a.ranges[1] = UINT16_MAX; }));
  CHECK(by_pivots([](Arrays& a) { a.ranges[4] = 1; }));
}

// What a file says may be wrong in any way: a search ends with an answer or an exception, inside its memory.
void test_kernels_bear_anything() {
  Random random(3);
  std::vector<uint8_t> queries(2 * 2);
  for (int trial = 0; trial < 300; ++trial) {
    Arrays arrays;
    arrays.with_pivots = trial % 2;
    for (auto& byte : arrays.tiles) byte = static_cast<uint8_t>(random.next());
    for (auto& byte : arrays.pivots) byte = static_cast<uint8_t>(random.next());
    for (auto& byte : queries) byte = static_cast<uint8_t>(random.next());
    for (size_t i = 0; i < arrays.ranges.size(); ++i)
      arrays.ranges[i] = i % 3 ? static_cast<uint16_t>(random.next()) : static_cast<uint16_t>(random.below(2));
    for (auto& row : arrays.rows) row = static_cast<uint32_t>(random.next());
    for (size_t c = 0; trial % 3 == 0 && c < arrays.n_codes; ++c) arrays.offsets[c] = random.below(500);
    const CodeBase base = base_of(arrays.view(), trial % 5 == 0);
    const std::vector<float> weights(2 * arrays.n_bits, 1.0f);
    for (const size_t k : {size_t{1}, size_t{20}, size_t{1000}}) try {
        nearest(base, queries.data(), 2, k, static_cast<int32_t>(random.below(20)), 1);
        nearest_weighted(base, queries.data(), weights.data(), 2, k, 1);
      } catch (const std::invalid_argument&) {
        CHECK(trial % 3 == 0);
      }
  }
}

void test_codes() {
  const std::vector<uint8_t> codes{0, 0x80, 0xFF, 0};
  const std::vector<uint32_t> rows{1, 0, 1}, outside{1, 2};
  const Grid<uint8_t> table{codes.data(), 2, 2};
  CHECK(!refuses([&] { check_codes(table); }));
  CHECK(refuses([&] { check_codes({codes.data(), 2, 0}); }));
  CHECK(refuses([&] { check_codes({codes.data(), UINT32_MAX, 1}); }));
  CHECK(!refuses([&] { check_to_tiles(table, span(rows), {nullptr, 1, 2, 64}); }));
  CHECK(refuses([&] { check_to_tiles(table, span(outside), {nullptr, 1, 2, 64}); }));
  CHECK(refuses([&] { check_to_tiles(table, {}, {nullptr, 2, 2, 64}); }));
  CHECK(refuses([&] { check_to_tiles({nullptr, 2, 0}, {}, {nullptr, 1, 0, 64}); }));  // tiles without memory
  CHECK(refuses([&] { check_to_tiles(table, {}, {nullptr, 1, 2, 63}); }));
  CHECK(!refuses([&] { check_from_tiles({nullptr, 1, 2, 64}, span(rows), 3, 2); }));
  CHECK(refuses([&] { check_from_tiles({nullptr, 0, 2, 64}, span(rows), 3, 2); }));
  CHECK(refuses([&] { check_from_tiles({nullptr, 1, 2, 64}, span(rows), 2, 2); }));
  CHECK(!refuses([&] { check_codes_to_order(table, span(rows), 9); }));
  CHECK(refuses([&] { check_codes_to_order(table, span(outside), 9); }));
  CHECK(refuses([&] { check_codes_to_order({codes.data() + 1, 1, 2}, {}, 15); }));  // the last bit is padding
  CHECK(refuses([&] { check_codes_to_order(table, span(rows), 0); }));
  CHECK(refuses([&] { check_codes_to_order(table, span(rows), SIZE_MAX); }));
}

void test_weights() {
  const Arrays arrays;
  const CodeBase base = base_of(arrays.view(), true);
  const std::vector<uint8_t> query(2);
  const auto weights = [&](float value, size_t n) {
    const std::vector<float> values(n, value);
    return refuses([&] { check_weights(base, {query.data(), 1, 2}, {values.data(), 1, n}); });
  };
  CHECK(!weights(0.0f, 13));
  CHECK(weights(0.0f, 12));
  CHECK(weights(-1.0f, 13));
  CHECK(weights(2e30f, 13));
  CHECK(weights(static_cast<float>(kNan), 13));
}

void test_cut_pool() {
  const std::vector<uint8_t> relevant{1, 0, 1};
  const CutCounts counts(relevant.data(), 1, 3, 1);
  const std::vector<uint64_t> words(6);
  const auto pool = [&](size_t n_base, size_t n_words, size_t n_bits) {
    return refuses(
        [&] { check_cut_pool(counts, {words.data(), n_base, n_words}, {words.data(), 1, n_words}, n_bits); });
  };
  CHECK(!pool(3, 2, 65));
  CHECK(pool(2, 2, 65));
  CHECK(pool(3, 2, 64));
  CHECK(pool(3, 0, 0));
  CHECK(pool(3, 0, SIZE_MAX));
  CHECK(refuses([&] { check_cut_bits(counts, {relevant.data(), 2}, {relevant.data(), 1}); }));
  CHECK(refuses([&] { check_cut_bits(counts, {relevant.data(), 3}, {relevant.data(), 2}); }));
}

// ------------------------------------------------------------------------------------------ trees

void test_trees() {
  TreeTable good;  // 0 -> 1, 2; 2 -> 3, 4
  good.feature = {0, 0, 1, 0, 0};
  good.left = {1, 1, 3, 3, 4};
  good.right = {2, 1, 4, 3, 4};
  good.roots = {0};
  good.threshold = good.value = {0, 0, 0, 0, 0};
  const auto refused = [&](const auto& change, size_t n_features = 2, size_t max_depth = 2) {
    TreeTable table = good;
    change(table);
    return refuses([&] { check_trees(table, n_features, max_depth); });
  };
  CHECK(!refused([](TreeTable&) {}));
  CHECK(!refused([](TreeTable& t) { t.threshold[0] = kInfinity; }));
  CHECK(refused([](TreeTable&) {}, 1));
  CHECK(refused([](TreeTable&) {}, 2, 1));
  CHECK(refused([](TreeTable& t) { t.left[2] = 0; }));
  CHECK(refused([](TreeTable& t) { t.left[2] = 2; }));
  CHECK(refused([](TreeTable& t) { t.right[2] = 5; }));
  CHECK(refused([](TreeTable& t) { t.right[2] = -1; }));
  CHECK(refused([](TreeTable& t) { t.feature[2] = -1; }));
  CHECK(refused([](TreeTable& t) { t.roots[0] = 5; }));
  CHECK(refused([](TreeTable& t) { t.threshold[0] = kNan; }));
  CHECK(refused([](TreeTable& t) { t.value[0] = kInfinity; }));
  CHECK(refused([](TreeTable& t) { t.bias = kNan; }));
  CHECK(refused([](TreeTable& t) { t.left.pop_back(); }));
}

void test_boosting() {
  struct Input {
    std::vector<uint8_t> bins{0, 1, 2, 0, 0, 0};
    std::vector<uint32_t> edge_begin{0, 2, 2};
    std::vector<double> edges{0.5, 1.5};
    std::vector<int8_t> z{1, -1, 1};
    BoostingOptions options;
  };
  const auto refused = [](const auto& change) {
    Input in;
    change(in);
    const Grid<uint8_t> bins{in.bins.data(), 2, in.bins.size() / 2};
    return refuses([&] { check_boosting(bins, span(in.edge_begin), span(in.edges), span(in.z), in.options); });
  };
  CHECK(!refused([](Input&) {}));
  CHECK(refused([](Input& in) { in.bins[2] = 3; }));
  CHECK(refused([](Input& in) { in.bins.clear(); }));
  CHECK(refused([](Input& in) { in.edge_begin = {0, 3, 2}; }));
  CHECK(refused([](Input& in) { in.edge_begin = {0, 2}; }));
  CHECK(refused([](Input& in) { in.edges[1] = 0.5; }));
  CHECK(refused([](Input& in) { in.edges[1] = kNan; }));
  CHECK(refused([](Input& in) { in.z[0] = 0; }));
  CHECK(refused([](Input& in) { in.z.pop_back(); }));
  // Margins would become infinite, then NaN, and a NaN has no whole number.
  CHECK(refused([](Input& in) { in.options.rate = 1e308; }));
  CHECK(refused([](Input& in) { in.options.rate = kNan; }));
  CHECK(refused([](Input& in) { in.options.penalty = 0; }));
  CHECK(refused([](Input& in) { in.options.penalty = kInfinity; }));
  CHECK(refused([](Input& in) { in.options.n_trees = UINT32_MAX; }));
}

}  // namespace

int main() {
  test_csr();
  test_counts();
  test_symmetric();
  test_neighbours();
  test_bits_and_field();
  test_pair_loss();
  test_segment();
  test_kernels_bear_anything();
  test_codes();
  test_weights();
  test_cut_pool();
  test_trees();
  test_boosting();
  return testing::all_passed("checks");
}

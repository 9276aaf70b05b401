// Searches among arrays that a file may hold, whatever they say. Where check_segment finds nothing wrong, the answers
// are those of a loop over all items.
#include <cmath>
#include <limits>

#include "input.hpp"
#include "random.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

struct Arrays {
  size_t n_codes, n_bits, m;
  std::vector<uint8_t> tiles, pivots;
  std::vector<uint32_t> offsets, rows;
  std::vector<uint16_t> ranges;
  bool with_offsets, with_rows, with_pivots, ordered;

  explicit Arrays(Input& in)
      : n_codes(in.below(in.take<uint8_t>() > 240 ? 600 : 70)),
        n_bits(1 + in.below(in.take<uint8_t>() > 240 ? 300 : 24)), m((n_bits + 7) / 8) {
    const uint8_t kind = in.take<uint8_t>();
    with_offsets = kind & 1;
    with_rows = with_offsets || (kind & 2);
    with_pivots = kind & 4;
    ordered = kind & 8;
    Random random(in.take<uint64_t>());
    fill_codes(in, random);
    fill_lists(in, random);
    for (size_t b = 0; b < (n_codes + 255) / 256; ++b)
      for (const uint16_t value : {uint16_t{0}, uint16_t{0}, static_cast<uint16_t>(n_bits)}) ranges.push_back(value);
    in.spoil(ranges);
    if (in.take<uint8_t>() == 0) n_codes = in.take<uint64_t>();
    if (in.take<uint8_t>() == 0) n_bits = in.take<uint64_t>();
  }

  void fill_codes(Input& in, Random& random) {
    const unsigned padding = (1u << (8 * m - n_bits)) - 1, few = in.take<uint8_t>();
    tiles.resize((n_codes + kTile - 1) / kTile * kTile * m);
    pivots.resize(m);
    for (size_t i = 0; i < tiles.size(); ++i) {
      tiles[i] = static_cast<uint8_t>(few & 1 ? random.next() & few : random.next());
      if (i / kTile % m == m - 1) tiles[i] = static_cast<uint8_t>(tiles[i] & ~padding);
    }
    in.spoil(tiles);
    in.spoil(pivots);
  }

  void fill_lists(Input& in, Random& random) {
    offsets.push_back(0);
    for (size_t c = 0; c < n_codes; ++c)
      offsets.push_back(offsets.back() + 1 + (with_offsets && random.below(8) == 0 ? random.below(4) : 0));
    for (uint32_t row = 0; row < offsets.back(); ++row) rows.push_back(row);
    in.spoil(offsets);
    in.spoil(rows);
  }

  SegmentArrays view() const {
    SegmentArrays out;
    out.tiles = {tiles.data(), tiles.size() / (m * kTile), m, kTile};
    out.n_codes = n_codes;
    out.n_bits = n_bits;
    if (with_offsets) out.offsets = span(offsets);
    if (with_rows) out.rows = span(rows);
    if (with_pivots) {
      out.pivots = Grid<uint8_t>{pivots.data(), pivots.size() / m, m};
      out.ranges = Grid<uint16_t>{ranges.data(), ranges.size() / 3, 3};
    }
    return out;
  }
};

uint8_t byte_of(const CodeBase& base, size_t code, size_t j) {
  return base.tiles[code / kTile * base.m * kTile + j * kTile + code % kTile];
}

bool differs(const CodeBase& base, size_t code, const uint8_t* query, size_t bit) {
  return (byte_of(base, code, bit / 8) ^ query[bit / 8]) & (128 >> bit % 8);
}

// Distances of all items, with their rows, in order.
template <class Distance>
std::vector<std::pair<Distance, uint32_t>> ranked(const CodeBase& base, const uint8_t* query, const float* weights) {
  std::vector<std::pair<Distance, uint32_t>> items;
  for (uint32_t c = 0; c < base.n_codes; ++c) {
    double sum = 0;
    for (size_t bit = 0; bit < base.n_bits; ++bit)
      if (differs(base, c, query, bit)) sum += weights ? static_cast<double>(weights[bit]) : 1.0;
    const uint32_t begin = base.offsets ? base.offsets[c] : c, end = base.offsets ? base.offsets[c + 1] : c + 1;
    for (uint32_t i = begin; i < end; ++i) items.push_back({static_cast<Distance>(sum), base.rows ? base.rows[i] : i});
  }
  std::sort(items.begin(), items.end());
  return items;
}

bool is_sound(const SegmentArrays& segment) {
  try {
    check_segment(segment);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

// In the sound ones of our segments ranges span all distances, unless bytes said otherwise; those may hide items.
bool hides_nothing(const Arrays& arrays) {
  for (size_t b = 0; b + 2 < arrays.ranges.size(); b += 3)
    if (arrays.ranges[b + 1] != 0 || arrays.ranges[b + 2] < arrays.n_bits) return false;
  return true;
}

void search(Input& in, const CodeBase& base, const std::vector<uint8_t>& queries, bool sound) {
  const size_t n = queries.size() / base.m, k = in.flag() ? in.take<size_t>() : in.below(20);
  const auto most = static_cast<int32_t>(in.flag() ? in.take<uint32_t>() >> 1 : in.below(64));
  check_queries(base, {queries.data(), n, base.m});
  const auto found = nearest(base, queries.data(), n, k, most, 1 + (in.take<uint8_t>() == 7));
  for (size_t q = 0; sound && q < n; ++q) {
    const auto items = ranked<int32_t>(base, queries.data() + q * base.m, nullptr);
    size_t wanted = 0;
    while (wanted < items.size() && wanted < k && items[wanted].first <= most) ++wanted;
    expect(found[q].rows.size() == wanted, "as many neighbours as there are");
    for (size_t i = 0; i < wanted; ++i)
      expect(found[q].rows[i] == items[i].second && found[q].distances[i] == items[i].first, "the nearest, in order");
  }
}

void search_weighted(Input& in, const CodeBase& base, const std::vector<uint8_t>& queries, bool sound) {
  const size_t n = queries.size() / base.m, k = in.flag() ? in.take<size_t>() : in.below(20);
  std::vector<float> weights(n * base.n_bits);
  Random random(in.take<uint64_t>());
  for (float& w : weights) w = static_cast<float>(random.below(64)) / 8;  // sums are exact in any order
  const bool dyadic = in.flag();
  if (!dyadic) in.spoil(weights);
  check_weights(base, {queries.data(), n, base.m}, {weights.data(), n, n ? weights.size() / n : base.n_bits});
  const auto found = nearest_weighted(base, queries.data(), weights.data(), n, k, 1);
  for (size_t q = 0; sound && dyadic && q < n; ++q) {
    const auto items = ranked<float>(base, queries.data() + q * base.m, weights.data() + q * base.n_bits);
    expect(found[q].rows.size() == std::min(k, items.size()), "as many neighbours as there are");
    for (size_t i = 0; i < found[q].rows.size(); ++i)
      expect(found[q].rows[i] == items[i].second && found[q].distances[i] == items[i].first, "the nearest by weight");
  }
}

void count(Input& in, const CodeBase& base, const std::vector<uint8_t>& queries) {
  const size_t n = queries.size() / base.m, width = base.n_bits + 1;
  const auto begin = in.many<int64_t>(n), end = in.many<int64_t>(n);
  std::vector<int64_t> counts(n * width), hits(n * width);
  distance_histograms(base, queries.data(), n, begin.data(), end.data(), 1, counts.data(), hits.data());
  for (size_t q = 0; q < n; ++q) {
    int64_t total = 0;
    for (size_t d = 0; d < width; ++d) {
      total += counts[q * width + d];
      expect(hits[q * width + d] >= 0 && hits[q * width + d] <= counts[q * width + d], "hits are among the codes");
    }
    expect(total == base.n_codes, "every code is counted");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    const Arrays arrays(in);
    const SegmentArrays segment = arrays.view();
    const CodeBase base = base_of(segment, arrays.ordered);
    const bool sound = is_sound(segment) && (!arrays.with_pivots || hides_nothing(arrays));
    const uint8_t kind = in.take<uint8_t>() % 16;
    std::vector<uint8_t> queries = in.many<uint8_t>(in.below(9) * base.m);
    if (in.flag())  // queries come through codes.check, which refuses padding; the kernels must bear it
      for (size_t q = base.m; q <= queries.size(); q += base.m)
        queries[q - 1] = static_cast<uint8_t>(queries[q - 1] & ~((1u << (8 * base.m - base.n_bits)) - 1));
    if (kind < 5) return search_weighted(in, base, queries, sound);
    if (kind == 5) return count(in, base, queries);  // which clears some megabytes first
    search(in, base, queries, sound);
  });
}

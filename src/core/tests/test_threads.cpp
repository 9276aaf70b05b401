// All threaded paths at once, to be run under ThreadSanitizer (`make test-tsan`): searches that share their base or
// their queries, histograms, cuts, and what several workers of a pool call at the same time. That answers do not depend
// on threads is checked on the way.
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "boosting.hpp"
#include "check.hpp"
#include "checks.hpp"
#include "cut.hpp"
#include "interruption.hpp"
#include "random.hpp"
#include "scan.hpp"
#include "vector.hpp"
#include "zstep.hpp"

using namespace ilhash;

namespace {

constexpr size_t kThreads = 4, kBits = 40, kBytes = 5;

std::vector<uint8_t> random_bytes(Random& random, size_t n) {
  std::vector<uint8_t> out(n);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random.next() & random.next());
  return out;
}

// Calls work(i) in as many threads at once.
template <class Work>
void at_once(const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

struct Base {
  std::vector<uint8_t> codes, tiles;
  std::vector<uint32_t> rows;
  PivotOrder by_pivots;
  CodeBase plain{}, with_pivots{};

  explicit Base(uint32_t n) : codes(n * kBytes), tiles((n + 63) / 64 * 64 * kBytes), rows(n) {
    Random random(n);
    const std::vector<uint8_t> centres = random_bytes(random, 4 * kBytes);
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<uint8_t>(centres[i / kBytes % 4 * kBytes + i % kBytes] ^
                                      (random.next() & random.next() & random.next()));
    for (uint32_t i = 0; i < n; ++i) rows[i] = i;
    by_pivots = order_by_pivots(codes.data(), rows.data(), n, kBytes, kBits);
    CHECK(by_pivots.order.size() == n);
    fill_tiles(codes.data(), by_pivots.order.data(), n, kBytes, tiles.data());
    plain = {tiles.data(), n, kBytes, kBits, nullptr, by_pivots.order.data(), false, {}};
    with_pivots = plain;
    with_pivots.ranges = {by_pivots.pivots.data(), by_pivots.pivots.size() / kBytes, by_pivots.ranges.data()};
  }
};

void test_searches(const Base& base, size_t n_queries) {
  Random random(7);
  const std::vector<uint8_t> queries = random_bytes(random, n_queries * kBytes);
  std::vector<float> weights(n_queries * kBits);
  for (float& w : weights) w = static_cast<float>(random.below(64)) / 8;
  const auto alone = nearest(base.plain, queries.data(), n_queries, 30, 64, 1);
  const auto weighted = nearest_weighted(base.plain, queries.data(), weights.data(), n_queries, 30, 1);
  at_once([&](size_t i) {
    const auto found = nearest(i % 2 ? base.plain : base.with_pivots, queries.data(), n_queries, 30, 64, kThreads);
    const auto within = nearest(base.plain, queries.data(), n_queries, SIZE_MAX, 4, kThreads);
    const auto by_weight = nearest_weighted(base.plain, queries.data(), weights.data(), n_queries, 30, kThreads);
    for (size_t q = 0; i == 0 && q < n_queries; ++q) {
      CHECK(found[q].rows == alone[q].rows && by_weight[q].rows == weighted[q].rows);
      CHECK(within[q].distances.empty() || within[q].distances.back() <= 4);
    }
  });
}

void test_histograms(const Base& base) {
  Random random(8);
  const size_t n = 40, width = kBits + 1;
  const std::vector<uint8_t> queries = random_bytes(random, n * kBytes);
  const std::vector<int64_t> begin(n, 10), end(n, 500);
  std::vector<std::vector<int64_t>> counts(kThreads, std::vector<int64_t>(n * width)), hits(counts);
  at_once([&](size_t i) {
    distance_histograms(base.plain, queries.data(), n, begin.data(), end.data(), kThreads, counts[i].data(),
                        hits[i].data());
  });
  for (size_t i = 1; i < kThreads; ++i) CHECK(counts[i] == counts[0] && hits[i] == hits[0]);
}

void test_cuts() {
  Random random(9);
  const size_t n_queries = 40, n_base = 300;
  const std::vector<uint8_t> relevant = random_bytes(random, n_queries * n_base);
  CutCounts counts(relevant.data(), n_queries, n_base, 20);
  for (size_t bit = 0; bit < 5; ++bit) {
    const auto base_bits = random_bytes(random, n_base), query_bits = random_bytes(random, n_queries);
    counts.add(base_bits.data(), query_bits.data(), kThreads);
  }
  std::vector<uint64_t> pool(n_base), queries(n_queries);
  for (uint64_t& word : pool) word = random.next();
  for (uint64_t& word : queries) word = random.next();
  std::vector<Cut> out(n_queries * 64);
  counts.with_each({pool.data(), n_base, 64}, {queries.data(), n_queries, 64}, kThreads, out.data());
  CHECK(out[0].before + out[0].places >= 20);
}

// What the workers of a pool do: each its own bit, with the memory that its thread kept, and a graph that another
// thread made and gives up.
void test_workers() {
  const std::vector<uint32_t> sizes{500, 500, 500};
  const SignedGraph shared = graph_from_classes(sizes, 20, 20, 99);
  std::vector<SignedGraph> handed;
  for (size_t i = 0; i < kThreads; ++i) handed.push_back(graph_from_classes(sizes, 60, 60, i));
  std::vector<std::vector<int8_t>> z(kThreads, std::vector<int8_t>(1500, 1));
  at_once([&](size_t i) {
    ZStepOptions options;
    options.seed = 5;
    alternate(shared, shared.block(), options, z[i].data());
    const SignedGraph own = std::move(handed[i]);
    std::vector<int8_t> bits(1500, 1);
    alternate(own, own.block(), options, bits.data());
  });
  for (size_t i = 1; i < kThreads; ++i) CHECK(z[i] == z[0]);
}

void test_boosting() {
  Random random(10);
  const uint32_t n = 400, d = 6;
  std::vector<uint8_t> bins(n * d);
  for (uint8_t& bin : bins) bin = static_cast<uint8_t>(random.below(8));
  std::vector<uint32_t> edge_begin;
  std::vector<double> edges;
  for (uint32_t j = 0; j <= d; ++j) edge_begin.push_back(7 * j);
  for (uint32_t j = 0; j < d; ++j)
    for (uint32_t e = 0; e < 7; ++e) edges.push_back(e + 0.5);
  std::vector<int8_t> z(n);
  for (int8_t& bit : z) bit = random.below(2) ? 1 : -1;
  std::vector<std::vector<double>> margins(kThreads, std::vector<double>(n));
  const BinnedFeatures x{bins.data(), n, d, edge_begin.data(), edges.data()};
  at_once([&](size_t i) { boost(x, z.data(), {20, 4, 2, 0.2, 0.1, 5}, margins[i].data()); });
  for (size_t i = 1; i < kThreads; ++i) CHECK(margins[i] == margins[0]);
}

void test_vectors() {
  const size_t n = 300, d = 20, b = 8;
  const std::vector<float> x(n * d, 1.5f), weights(b * d, 0.5f), bias(b, 1.0f), origin(d, 0.5f);
  std::vector<int32_t> columns(b * d);
  for (size_t j = 0; j < columns.size(); ++j) columns[j] = static_cast<int32_t>(j % d);
  std::vector<int64_t> rows(n, 3);
  at_once([&](size_t) {
    std::vector<float> out(n * b), tile(d * kProjectTile), gathered(n * d), scratch(2 * d);
    std::vector<double> sum(d), squares(d);
    vector_kernels().project_subsets({x.data(), d, n, d}, weights.data(), columns.data(), bias.data(), b, d,
                                     tile.data(), {out.data(), b, n, b});
    vector_kernels().gather_f32({x.data(), d, n, d}, rows.data(), nullptr, origin.data(), {gathered.data(), d, n, d},
                                scratch.data(), sum.data(), squares.data());
  });
}

}  // namespace

int main() {
  interruption_check = [] {};  // is asked, and lets the work go on
  const Base base(20000);
  for (const size_t n_queries : {3, 70}) test_searches(base, n_queries);
  test_histograms(base);
  test_cuts();
  test_workers();
  test_boosting();
  test_vectors();
  return testing::all_passed("threads");
}

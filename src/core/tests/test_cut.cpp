// CutCounts against a slow, obvious twin, to be run under AddressSanitizer and UBSan.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "cut.hpp"
#include "random.hpp"

using namespace ilhash;

namespace {

bool operator==(const Cut& a, const Cut& b) {
  return a.before == b.before && a.hits_before == b.hits_before && a.places == b.places && a.hits == b.hits;
}

struct Bits {  // [row][bit], and the same as words
  std::vector<std::vector<uint8_t>> rows;
  std::vector<uint64_t> words;
  size_t n_bits;

  Bits(Random& random, size_t n, size_t bits, bool crowded) : rows(n, std::vector<uint8_t>(bits)), n_bits(bits) {
    const size_t n_words = (bits + 63) / 64;
    words.resize(n * n_words);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < bits; ++j) {
        rows[i][j] = crowded ? random.next() >> 60 == 0 : random.next() >> 63;
        words[i * n_words + j / 64] |= uint64_t{rows[i][j]} << (j % 64);
      }
  }
  WordCodes codes() const { return {words.data(), rows.size(), n_bits}; }
  std::vector<uint8_t> column(size_t j) const {
    std::vector<uint8_t> out;
    for (const auto& row : rows) out.push_back(row[j]);
    return out;
  }
};

// By sorting all distances.
Cut obvious(const std::vector<uint8_t>& query, const std::vector<std::vector<uint8_t>>& base, const uint8_t* relevant,
            const std::vector<size_t>& bits, size_t k) {
  std::vector<size_t> distance;
  for (const auto& row : base) {
    size_t d = 0;
    for (const size_t j : bits) d += row[j] != query[j];
    distance.push_back(d);
  }
  std::vector<size_t> sorted = distance;
  std::sort(sorted.begin(), sorted.end());
  const size_t edge = sorted[k - 1];
  Cut cut{};
  for (size_t i = 0; i < base.size(); ++i) {
    cut.before += distance[i] < edge;
    cut.hits_before += distance[i] < edge && relevant[i];
    cut.places += distance[i] == edge;
    cut.hits += distance[i] == edge && relevant[i];
  }
  return cut;
}

void test_rounds(uint64_t seed, size_t n, size_t n_queries, size_t n_bits, size_t k, bool crowded) {
  Random random(seed);
  const Bits base(random, n, n_bits, crowded), queries(random, n_queries, n_bits, crowded);
  std::vector<uint8_t> relevant(n_queries * n);
  for (uint8_t& r : relevant) r = random.next() >> 62 == 0;
  CutCounts counts(relevant.data(), n_queries, n, k);
  std::vector<size_t> chosen;
  for (size_t round = 0; round < 6; ++round) {
    std::vector<Cut> out(n_queries * n_bits);
    counts.with_each(base.codes(), queries.codes(), 1 + round % 3, out.data());
    for (size_t q = 0; q < n_queries; ++q) {
      const uint8_t* const own = relevant.data() + q * n;
      CHECK(counts.cuts()[q] == obvious(queries.rows[q], base.rows, own, chosen, k));
      for (size_t j = 0; j < n_bits; ++j) {
        std::vector<size_t> more = chosen;
        more.push_back(j);
        CHECK(out[q * n_bits + j] == obvious(queries.rows[q], base.rows, own, more, k));
      }
    }
    const size_t next = random.next() % n_bits;  // also one that was chosen before: it counts twice
    chosen.push_back(next);
    counts.add(base.column(next).data(), queries.column(next).data(), 1 + round % 2);
    CHECK(counts.n_bits() == chosen.size());
  }
}

void test_refusals() {
  const std::vector<uint8_t> relevant(6);
  for (const size_t k : {size_t{0}, size_t{4}}) {
    bool refused = false;
    try {
      CutCounts counts(relevant.data(), 2, 3, k);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

}  // namespace

int main() {
  uint64_t seed = 0;
  for (const size_t n_bits : {1, 63, 64, 65, 130})
    for (const size_t n : {1, 2, 7, 8, 100})
      for (const bool crowded : {false, true})
        for (const size_t k : {size_t{1}, (n + 1) / 2, n}) test_rounds(++seed, n, 1 + n_bits % 19, n_bits, k, crowded);
  test_refusals();
  return testing::all_passed("cut");
}

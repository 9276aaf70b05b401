// Precision bit by bit, against counting anew.
#include "cut.hpp"
#include "input.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

Cut counted(const std::vector<int>& distance, const uint8_t* relevant, size_t k) {
  for (int edge = 0;; ++edge) {
    Cut cut{};
    for (size_t i = 0; i < distance.size(); ++i) {
      const bool before = distance[i] < edge, at = distance[i] == edge;
      cut.before += before;
      cut.places += at;
      cut.hits_before += before && relevant[i];
      cut.hits += at && relevant[i];
    }
    if (static_cast<size_t>(cut.before) + static_cast<size_t>(cut.places) >= k) return cut;
  }
}

bool equal(const Cut& a, const Cut& b) {
  return a.before == b.before && a.hits_before == b.hits_before && a.places == b.places && a.hits == b.hits;
}

std::vector<uint64_t> words(Input& in, size_t n) { return in.many<uint64_t>(n); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    const size_t n_queries = in.below(4), n_base = in.below(24), k = in.flag() ? in.take<size_t>() : in.below(26);
    const std::vector<uint8_t> relevant = in.many<uint8_t>(n_queries * n_base);
    CutCounts counts(relevant.data(), n_queries, n_base, k);
    std::vector<std::vector<int>> distance(n_queries, std::vector<int>(n_base, 0));
    for (size_t n_bits = in.below(6); n_bits > 0; --n_bits) {
      std::vector<uint8_t> base_bits = in.many<uint8_t>(n_base), query_bits = in.many<uint8_t>(n_queries);
      in.spoil(base_bits);
      in.spoil(query_bits);
      check_cut_bits(counts, span(base_bits), span(query_bits));
      counts.add(base_bits.data(), query_bits.data(), 1);
      for (size_t q = 0; q < n_queries; ++q) {
        for (size_t i = 0; i < n_base; ++i) distance[q][i] += (base_bits[i] != 0) != (query_bits[q] != 0);
        expect(equal(counts.cuts()[q], counted(distance[q], relevant.data() + q * n_base, k)), "counts are right");
      }
    }
    const size_t n_pool = in.below(140), n_words = (n_pool + 63) / 64;
    std::vector<uint64_t> pool = words(in, n_base * n_words), queries = words(in, n_queries * n_words);
    const size_t n_bits = in.take<uint8_t>() == 0 ? in.take<size_t>() : n_pool;
    const CutPool checked =
        check_cut_pool(counts, {pool.data(), n_base, n_words}, {queries.data(), n_queries, n_words}, n_bits);
    std::vector<Cut> out(n_queries * n_bits);
    counts.with_each(checked.base, checked.queries, 1, out.data());
    for (size_t q = 0; q < n_queries; ++q)
      for (size_t j = 0; j < n_bits; ++j) {
        std::vector<int> then = distance[q];
        for (size_t i = 0; i < n_base; ++i) then[i] += checked.base.bit(i, j) != checked.queries.bit(q, j);
        expect(equal(out[q * n_bits + j], counted(then, relevant.data() + q * n_base, k)), "counts with a bit more");
      }
  });
}

// Graphs out of bytes, for the fuzzers that need some.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "input.hpp"

namespace ilhash::fuzz {

struct Csr {
  std::vector<uint32_t> row_begin, columns;
};

// Pairs out of bytes, both ways, sorted, with one value for each pair; then perhaps spoilt.
template <class T, class Value>
std::pair<Csr, std::vector<T>> symmetric(Input& in, const Value& value) {
  const size_t n = in.below(20);
  std::map<std::pair<uint32_t, uint32_t>, T> pairs;
  for (size_t left = n ? in.below(60) : 0; left > 0; --left) {
    const auto a = static_cast<uint32_t>(in.below(n)), b = static_cast<uint32_t>(in.below(n));
    if (a == b) continue;
    const T w = value(in);
    pairs[{a, b}] = w;
    pairs[{b, a}] = w;
  }
  Csr out;
  std::vector<T> values;
  out.row_begin.push_back(0);
  for (uint32_t i = 0; i < n; ++i) {
    for (auto it = pairs.lower_bound({i, 0}); it != pairs.end() && it->first.first == i; ++it) {
      out.columns.push_back(it->first.second);
      values.push_back(it->second);
    }
    out.row_begin.push_back(static_cast<uint32_t>(out.columns.size()));
  }
  in.spoil(out.row_begin);
  in.spoil(out.columns);
  in.spoil(values);
  return {out, values};
}

inline SignedGraph coupled(Input& in) {
  const auto [csr, w] = symmetric<double>(in, [](Input& bytes) {
    switch (bytes.take<uint8_t>() % 4) {
      case 0: return 1.0;
      case 1: return -1.0;
      case 2: return static_cast<double>(bytes.take<int16_t>());
      default: return bytes.take<double>();
    }
  });
  const uint32_t n = check_couplings(span(csr.row_begin), span(csr.columns), span(w));
  return graph_from_couplings(csr.row_begin.data(), csr.columns.data(), w.data(), n);
}

inline SignedGraph signed_pairs(Input& in) {
  const auto [csr, signs] =
      symmetric<int8_t>(in, [](Input& bytes) { return static_cast<int8_t>(bytes.flag() ? 1 : -1); });
  const uint32_t n = check_signed_pairs(span(csr.row_begin), span(csr.columns), span(signs));
  return graph_from_signs(csr.row_begin.data(), csr.columns.data(), signs.data(), n);
}

inline SignedGraph of_classes(Input& in) {
  std::vector<uint32_t> sizes(in.below(6));
  for (uint32_t& size : sizes) size = static_cast<uint32_t>(in.below(12));
  check_classes(sizes);
  const auto similar = static_cast<uint32_t>(in.below(8)), dissimilar = in.take<uint32_t>();
  return graph_from_classes(sizes, similar, dissimilar, in.take<uint64_t>());
}

inline SignedGraph of_label_sets(Input& in) {
  const uint32_t n_labels = in.take<uint8_t>() % 8;
  std::vector<uint32_t> row_begin{0}, labels;
  for (size_t rows = in.below(16); rows > 0; --rows) {
    for (size_t own = in.below(4); n_labels && own > 0; --own)
      labels.push_back(static_cast<uint32_t>(in.below(n_labels)));
    row_begin.push_back(static_cast<uint32_t>(labels.size()));
  }
  in.spoil(row_begin);
  in.spoil(labels);
  const uint32_t n = check_label_sets(span(row_begin), span(labels), n_labels);
  const uint32_t similar = in.take<uint8_t>() % 8, dissimilar = in.take<uint32_t>();
  return graph_from_label_sets(row_begin.data(), labels.data(), n, n_labels, similar, dissimilar, in.take<uint64_t>());
}

inline SignedGraph of_neighbours(Input& in) {
  const size_t n = in.below(16), k = in.below(5);
  std::vector<uint32_t> table;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < k; ++j) table.push_back(static_cast<uint32_t>((i + 1 + j) % n));
  for (size_t changes = table.empty() ? 0 : in.below(4); changes > 0; --changes)
    table[in.below(table.size())] = in.take<uint32_t>() % 20;
  table = std::vector<uint32_t>(table);
  check_neighbours({table.data(), n, k});
  return graph_from_neighbours(table.data(), static_cast<uint32_t>(n), static_cast<uint32_t>(k),
                               in.take<uint32_t>() % 32, in.take<uint64_t>());
}

inline SignedGraph any_graph(Input& in) {
  switch (in.take<uint8_t>() % 5) {
    case 0: return of_classes(in);
    case 1: return of_label_sets(in);
    case 2: return of_neighbours(in);
    case 3: return signed_pairs(in);
    default: return coupled(in);
  }
}

}  // namespace ilhash::fuzz

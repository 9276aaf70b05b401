// Infinite digits.
#include "../digits.hpp"

#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

using Limits = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t>;

Deformation deformation_of(const Limits& limits) {
  const auto made = std::apply([](auto... values) { return Deformation{values...}; }, limits);
  require_no_fault(fault_of(made));
  return made;
}

auto digit_sources(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  check_sources(n, count);
  std::vector<int64_t> out(count);
  {
    const GilReleased released;
    for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(source_of(n, seed, start + i));
  }
  return to_numpy(std::move(out));
}

void digit_images(Table<uint8_t> sources, const Limits& limits, uint64_t seed, uint64_t start,
                  WritableTable<uint8_t> out) {
  const Deformation deformation = deformation_of(limits);
  const auto pixels = static_cast<size_t>(deformation.side) * static_cast<size_t>(deformation.side);
  require(sources.shape(0) > 0, "there must be at least one source");
  require(sources.shape(1) == pixels && out.shape(1) == pixels, "rows must be images of side x side pixels");
  const GilReleased released;
  Deformer deformer(deformation);
  for (size_t i = 0; i < out.shape(0); ++i) {
    const uint64_t source = source_of(sources.shape(0), seed, start + i);
    deformer.image(sources.data() + source * pixels, seed, start + i, out.data() + i * pixels);
  }
}

void digit_fields(const Limits& limits, uint64_t seed, uint64_t start,
                  nb::ndarray<int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
  const Deformation deformation = deformation_of(limits);
  const auto pixels = static_cast<size_t>(deformation.side) * static_cast<size_t>(deformation.side);
  require(out.shape(1) == 2 && out.shape(2) == pixels, "out must hold two values per pixel of each image");
  const GilReleased released;
  Deformer deformer(deformation);
  for (size_t i = 0; i < out.shape(0); ++i) {
    int32_t* const field = out.data() + 2 * i * pixels;
    deformer.field(seed, start + i, field, field + pixels);
  }
}

}  // namespace

void bind_digits(nb::module_& m) {
  m.def("digit_sources", &digit_sources, "n"_a, "seed"_a, "start"_a, "count"_a,
        "Which of n sources the images start .. start + count are made from.");
  m.def("digit_images", &digit_images, "sources"_a.noconvert(), "limits"_a, "seed"_a, "start"_a, "out"_a.noconvert(),
        "Images start, start + 1, ... into the rows of out.");
  m.def("digit_fields", &digit_fields, "limits"_a, "seed"_a, "start"_a, "out"_a.noconvert(),
        "Displacements of the pixels of images start, start + 1, ..., rightwards and downwards, in 1/1024 pixel.");
}

}  // namespace ilhash::bindings

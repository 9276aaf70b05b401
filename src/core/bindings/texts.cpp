// Ids that are texts: whether a file's are sound, and where some of them are.
#include "../texts.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

Texts as_texts(const Vector<uint8_t>& bytes, const Vector<int64_t>& ends) {
  require(ends.shape(0) > 0, "ends of texts must have one entry more than there are texts");
  return {bytes.data(), bytes.shape(0), ends.data(), ends.shape(0) - 1};
}

void check(Vector<uint8_t> bytes, Vector<int64_t> ends) {
  const Texts texts = as_texts(bytes, ends);
  const GilReleased released;
  require_no_fault(fault_of(texts));
}

nb::ndarray<nb::numpy, int64_t, nb::ndim<1>> find(Vector<uint8_t> bytes, Vector<int64_t> ends, Vector<uint8_t> wanted,
                                                  Vector<int64_t> wanted_ends) {
  const Texts texts = as_texts(bytes, ends), some = as_texts(wanted, wanted_ends);
  std::vector<int64_t> found(some.n);
  {
    const GilReleased released;
    find_texts(texts, some, found.data());
  }
  return to_numpy(std::move(found));
}

}  // namespace

void bind_texts(nb::module_& m) {
  m.def("check_texts", &check, "text"_a.noconvert(), "ends"_a.noconvert(),
        "Raise ValueError unless text i, text[ends[i]:ends[i + 1]], is UTF-8 and comes before text i + 1.");
  m.def("find_texts", &find, "text"_a.noconvert(), "ends"_a.noconvert(), "wanted"_a, "wanted_ends"_a,
        "The number of each wanted text among ascending ones, -1 where there is none.");
}

}  // namespace ilhash::bindings

// Chooses the vector kernels once, at first use. ILHASH_SIMD=portable|avx2|avx512 asks for a lower set (tests do).
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "label_kernels.hpp"
#include "scan_kernels.hpp"
#include "tree_kernels.hpp"
#include "vector.hpp"

#if defined(_MSC_VER) && defined(ILHASH_X86)
#include <intrin.h>
#endif

namespace ilhash {

namespace portable {
const VectorKernels& table();
const ScanKernels& scan_table();
const LabelKernels& label_table();
const TreeKernels& tree_table();
}  // namespace portable
#ifdef ILHASH_X86
namespace avx2 {
const VectorKernels& table();
const ScanKernels& scan_table();
const LabelKernels& label_table();
const TreeKernels& tree_table();
}  // namespace avx2
namespace avx512 {
const VectorKernels& table();
const ScanKernels& scan_table();
const LabelKernels& label_table();
const TreeKernels& tree_table();
}  // namespace avx512
#endif

namespace {

struct Level {
  const char* name;
  bool supported;
  const VectorKernels& (*table)();
  const ScanKernels& (*scan_table)();
  const LabelKernels& (*label_table)();
  const TreeKernels& (*tree_table)();
};

#ifdef ILHASH_X86
#ifdef _MSC_VER
bool leaf7_bits(int register_index, int bits) {
  int info[4];
  __cpuid(info, 1);
  constexpr int kNeeded = 1 << 12 | 1 << 23 | 1 << 27;  // FMA, POPCNT, and the system must save the wide registers
  if ((info[2] & kNeeded) != kNeeded) return false;
  __cpuidex(info, 7, 0);
  return (info[register_index] & bits) == bits;
}
bool has_avx2() { return leaf7_bits(1, 1 << 3 | 1 << 5 | 1 << 8) && (_xgetbv(0) & 0x6) == 0x6; }  // BMI, AVX2, BMI2
bool has_avx512() {
  return has_avx2() && leaf7_bits(1, (1 << 16) | (1 << 17) | (1 << 30) | static_cast<int>(1u << 31)) &&
         (_xgetbv(0) & 0xE6) == 0xE6;
}
#else
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
#endif

Level choose() {
  const Level levels[] = {
#ifdef ILHASH_X86
      {"avx512", has_avx512(), avx512::table, avx512::scan_table, avx512::label_table, avx512::tree_table},
      {"avx2", has_avx2(), avx2::table, avx2::scan_table, avx2::label_table, avx2::tree_table},
#endif
      {"portable", true, portable::table, portable::scan_table, portable::label_table, portable::tree_table},
  };
  const char* const asked = std::getenv("ILHASH_SIMD");
  for (const Level& level : levels)
    if (level.supported && (!asked || !*asked || std::strcmp(asked, level.name) == 0)) return level;
  throw std::runtime_error(std::string("ILHASH_SIMD must name an instruction set of this machine (portable, avx2 or "
                                       "avx512), got ") +
                           asked);
}

const Level& chosen() {
  static const Level level = choose();
  return level;
}

}  // namespace

const VectorKernels& vector_kernels() { return chosen().table(); }
const ScanKernels& scan_kernels() { return chosen().scan_table(); }
const LabelKernels& label_kernels() { return chosen().label_table(); }
const TreeKernels& tree_kernels() { return chosen().tree_table(); }
const char* vector_level() { return chosen().name; }

}  // namespace ilhash

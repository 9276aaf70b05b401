#include "gil.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../interruption.hpp"

namespace ilhash::bindings {

namespace {

std::atomic<bool> leaving{false};
std::atomic<long> in_the_core{0};       // threads that gave up the GIL and do not have it back
std::atomic<long> coming_back{0};       // those among them that wait for it
std::atomic<std::thread::id> last_one;  // the thread that shuts Python down, and may still call the core
std::thread::id signalled;              // the thread that Python runs handlers of signals in

[[noreturn]] void wait_for_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void raise_what_signals_ask_for() {
  if (std::this_thread::get_id() != signalled) return;
  const nanobind::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace

GilReleased::GilReleased() : state_(PyEval_SaveThread()) { ++in_the_core; }

GilReleased::~GilReleased() {
  ++coming_back;
  if (leaving && last_one.load() != std::this_thread::get_id()) {
    --coming_back;
    wait_for_the_end();
  }
  PyEval_RestoreThread(state_);
  --coming_back;
  --in_the_core;
}

void leave() {
  last_one = std::this_thread::get_id();
  leaving = true;
  PyThreadState* const state = PyEval_SaveThread();  // those who are coming back need it
  // Not for ever: in a forked child, threads were counted that it does not have.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (coming_back && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  PyEval_RestoreThread(state);
  if (in_the_core) nanobind::set_leak_warnings(false);  // they will not let go of what they work on
}

void listen_to_signals() {
  signalled = std::this_thread::get_id();
  interruption_check = raise_what_signals_ask_for;
}

}  // namespace ilhash::bindings

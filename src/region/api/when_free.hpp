// region/api/when_free.hpp: waits for a branch that another process uses briefly.
#pragma once

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>
#include <vellum/error.hpp>

#include "store/stream/image_tail.hpp"

namespace vellum::api {

// Returns the result of `open`, which opens the branch. A program that has closed the branch's file,
// but keeps the branch for a commit, is asked for it. Calls `open` again while its error is one of
// `taken`, at most until `end`.
template <typename Open>
auto when_free(const std::string& store, const std::string& branch,
               std::chrono::steady_clock::time_point end, std::initializer_list<Errc> taken,
               const Open& open) {
  store::AskForBranch keeper(store, branch);
  for (;;) {
    try {
      return open();
    } catch (const Error& error) {
      if (error.code() == Errc::busy) keeper.ask();
      const bool is_taken = std::find(taken.begin(), taken.end(), error.code()) != taken.end();
      if (!is_taken || std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace vellum::api

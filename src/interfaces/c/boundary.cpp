#include "interfaces/c/boundary.hpp"

#include <cassert>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vellum/version.hpp>

#include "base/fail.hpp"

namespace vellum::capi {
namespace {

// Both interfaces use the same numbers.
static_assert(VELLUM_OK == static_cast<int>(Errc::ok));
static_assert(VELLUM_ERR_INVALID_ARGUMENT == static_cast<int>(Errc::invalid_argument));
static_assert(VELLUM_ERR_NOT_FOUND == static_cast<int>(Errc::not_found));
static_assert(VELLUM_ERR_ALREADY_EXISTS == static_cast<int>(Errc::already_exists));
static_assert(VELLUM_ERR_NOT_A_STORE == static_cast<int>(Errc::not_a_store));
static_assert(VELLUM_ERR_NEWER_FORMAT == static_cast<int>(Errc::newer_format));
static_assert(VELLUM_ERR_BUSY == static_cast<int>(Errc::busy));
static_assert(VELLUM_ERR_READ_ONLY == static_cast<int>(Errc::read_only));
static_assert(VELLUM_ERR_NO_SPACE == static_cast<int>(Errc::no_space));
static_assert(VELLUM_ERR_IO == static_cast<int>(Errc::io));
static_assert(VELLUM_ERR_CORRUPTED == static_cast<int>(Errc::corrupted));
static_assert(VELLUM_ERR_POISONED == static_cast<int>(Errc::poisoned));
static_assert(VELLUM_ERR_UNSUPPORTED == static_cast<int>(Errc::unsupported));
static_assert(VELLUM_ERR_OUT_OF_MEMORY == static_cast<int>(Errc::out_of_memory));
static_assert(VELLUM_ERR_WRONG_KEY == static_cast<int>(Errc::wrong_key));
static_assert(VELLUM_ERR_UNTRUSTED == static_cast<int>(Errc::untrusted));

// The fixed size needs no allocation to record an error. Longer messages are truncated.
thread_local char last_message[2048] = "";

int note(int code, const char* message) noexcept {
  assert(code != VELLUM_OK);
  std::snprintf(last_message, sizeof last_message, "%s", message);
  return code;
}

}  // namespace

int note_current_exception() noexcept {
  try {
    throw;
  } catch (const Stopped&) {
    return note(VELLUM_ERR_STOPPED, "the program's callback ended the call");
  } catch (const Error& error) {
    return note(static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return note(VELLUM_ERR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::length_error& error) {
    return note(VELLUM_ERR_INVALID_ARGUMENT, error.what());
  } catch (const std::exception& error) {
    return note(VELLUM_ERR_IO, error.what());
  } catch (...) {
    return note(VELLUM_ERR_IO, "an exception of an unknown type");
  }
}

void refuse_null(const char* name) { fail(Errc::invalid_argument, "{} is NULL", name); }

ProgressFn progress_of(vellum_progress_fn progress, void* context) {
  if (progress == nullptr) return nullptr;
  return [progress, context](const Progress& p) {
    if (progress(p.done, p.total, p.unit, context) != 0) throw Stopped();
  };
}

void require_struct_size(std::size_t struct_size) {
  if (struct_size < sizeof struct_size) {
    fail(Errc::invalid_argument, "struct_size is not set");
  }
}

vellum_commit_report to_c(const CommitReport& report) {
  const auto ns = [](std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(time.count());
  };
  vellum_commit_report result = VELLUM_COMMIT_REPORT_INIT;
  result.sequence = report.sequence;
  result.pages_dirty = report.pages_dirty;
  result.pages_changed = report.pages_changed;
  result.bytes_written = report.bytes_written;
  result.scan_ns = ns(report.scan_time);
  result.encode_ns = ns(report.encode_time);
  result.write_ns = ns(report.write_time);
  result.flush_ns = ns(report.flush_time);
  result.publish_ns = ns(report.publish_time);
  result.total_ns = ns(report.total_time);
  result.checkpointed = report.checkpointed ? 1 : 0;
  result.pause_ns = ns(report.pause_time);
  return result;
}

}  // namespace vellum::capi

extern "C" {

const char* vellum_errc_name(int code) {
  if (code == VELLUM_ERR_STOPPED) return "stopped";  // in C++ the callback's exception passes
  if (code < VELLUM_OK || code > VELLUM_ERR_UNTRUSTED) {
    return "unknown";
  }
  return vellum::errc_name(static_cast<vellum::Errc>(code));
}

const char* vellum_version(void) { return vellum::version(); }

const char* vellum_error_message(void) { return vellum::capi::last_message; }

}  // extern "C"

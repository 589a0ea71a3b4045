#include "remote/lazy/open_remote.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <future>
#include <optional>

#include "base/fail.hpp"
#include "base/new_file.hpp"
#include "remote/lazy/away_packs.hpp"
#include "remote/lazy/remote_files.hpp"
#include "remote/session/open_engine.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kDefaultCacheBytes = 10ULL << 30;
constexpr std::chrono::milliseconds kDefaultWait{60'000};
constexpr std::chrono::milliseconds kMostWait = std::chrono::hours(24 * 365);

std::optional<std::string> environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const char* name) {
  const auto text = environment(name);
  if (!text.has_value()) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [at, problem] = std::from_chars(text->data(), end, number);
  if (problem != std::errc() || at != end || number > INT64_MAX / 1000) {
    fail(Errc::invalid_argument, "{}='{}': not a number", name, *text);
  }
  return number;
}

std::string cache_directory() {
  if (auto own = environment("VELLUM_CACHE_DIR")) return *own;
  const auto xdg = environment("XDG_CACHE_HOME");
  if (xdg.has_value() && xdg->starts_with('/')) return *xdg + "/vellum";
  const auto home = environment("HOME");
  return home.has_value() && home->starts_with('/') ? *home + "/.cache/vellum" : "";
}

LazyOptions resolve(const RemoteOptions& options) {
  LazyOptions out;
  out.cache_directory =
      options.cache_directory.has_value() ? *options.cache_directory : cache_directory();
  out.cache_bytes = options.cache_bytes.has_value()
                        ? *options.cache_bytes
                        : number_in("VELLUM_CACHE_BYTES").value_or(kDefaultCacheBytes);
  out.longest_wait = kDefaultWait;
  if (options.longest_wait.has_value()) {
    out.longest_wait = *options.longest_wait;
  } else if (const auto seconds = number_in("VELLUM_REMOTE_WAIT_S")) {
    out.longest_wait = std::chrono::seconds(*seconds);
  }
  out.longest_wait = std::min(out.longest_wait, kMostWait);
  if (out.longest_wait.count() < 1) {
    fail(Errc::invalid_argument, "the longest wait for a remote must be a millisecond at least");
  }
  return out;
}

// The files of the names live as long as the store.
struct OpenRemote {
  OpenRemote(base::Fs& fs, const std::string& url, const format::Superblock& superblock,
             const Head& head)
      : names(fs, url, superblock, head) {}
  RemoteFiles names;
  std::shared_ptr<store::StoreCore> core;
};

}  // namespace

std::shared_ptr<store::StoreCore> open_remote(base::Fs& fs, const std::string& given,
                                              const RemoteOptions& options,
                                              std::unique_ptr<ObjectStore> objects) {
  const std::string url = base::without_end_slashes(given);
  const LazyOptions resolved = resolve(options);
  if (objects == nullptr) objects = open_object_store(fs, url);
  // Side by side with the listing: one round trip less.
  auto superblock_there =
      std::async(std::launch::async, [&objects] { return read_superblock(*objects); });
  const auto number = newest_number_at(*objects);
  const format::Superblock superblock = superblock_there.get();
  Head head = Remote(*objects, superblock.store_id).newest_head(number).head;
  auto out = std::make_shared<OpenRemote>(fs, url, superblock, head);
  auto packs = std::make_shared<AwayPacks>(fs, std::move(objects), superblock.store_id,
                                           std::move(head), resolved);
  out->core = store::StoreCore::open(out->names, url, std::move(packs));
  return {out, out->core.get()};
}

}  // namespace vellum::remote

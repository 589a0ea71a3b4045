// remote/pieces/uploads.hpp: the uploads of a push: small objects concurrently at its end, large
// ones immediately; and the set of objects that the remote has.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

// What a process has seen of the remote: the lists and pieces of a listing, with their sizes, and
// heads with embedded objects. A head may refer to objects that were lost since: a push must not build
// on these.
//
// Threads: all calls from any thread.
class SeenObjects {
 public:
  using EmbeddedObjects = std::vector<EmbeddedObject>;
  // Lists the objects unless they are known, and looks at the heads that have these embedded ones.
  // Runs `task` concurrently. Makes the listed objects durable.
  void load(const Remote& remote, EmbeddedObjects embedded, base::ThreadPool& pool,
            const std::function<void()>& task);
  // The tasks of load(), for a caller with its own pool. After the last one, call finish_loading().
  std::vector<std::function<void()>> load_tasks(const Remote& remote, EmbeddedObjects embedded);
  void finish_loading();
  // The part of them that looks at the heads with these embedded objects.
  std::vector<std::function<void()>> look_tasks(const Remote& remote, EmbeddedObjects embedded);
  // Looks for one object, and makes it durable: for a push that refers to few, instead of load().
  void look_for(const Remote& remote, const std::string& key, std::uint64_t size_bytes);
  bool is_known() const;
  // The remote may have changed: the next load() lists it again.
  void forget();

  // Whether a push that publishes a head also replaces the copy of the newest head: once a minute.
  bool wants_copy() const;
  void note_copy();

  // The newest head when this process has last looked for an older one; nullopt: never. A push that
  // follows the own pushes of this process looks once a minute.
  struct Look {
    HeadId newest_head;
    std::uint32_t generation = 0;
  };
  bool wants_look() const;
  std::optional<Look> last_look() const;
  void note_look(const Look& look);

  // Whether the head exists, and is long enough. Asks the remote about a head that is not known.
  bool has(const Remote& remote, const EmbeddedObject& object);
  // A head that this process has published.
  void add_head(const Head& head);
  bool has(const std::string& key, std::uint64_t size_bytes) const;
  bool has(const ListName& list) const;
  bool has(const PieceName& piece) const;
  // Whether the object exists with another size.
  bool has_damaged(const std::string& key, std::uint64_t size_bytes) const;
  void add(const std::string& key, std::uint64_t size_bytes);

 private:
  void add_listed(const Remote& remote, const char* prefix);

  mutable std::mutex mutex_;  // guards the members below
  bool is_known_ = false;
  std::map<std::string, std::uint64_t> sizes_;
  struct SeenHead {
    std::uint64_t id = 0, size_bytes = 0;  // the size is at least this
  };
  std::map<std::uint64_t, SeenHead> heads_;  // by number
  std::optional<std::chrono::steady_clock::time_point> copied_, looked_;
  std::optional<Look> last_look_;
};

// The objects that one push uploads.
class Uploads {
 public:
  // `before_large` is called once, before the first object is uploaded by add(); it may be null,
  // and its exceptions end the upload. Uploaded objects are added to `seen_objects`; objects that
  // are damaged there are replaced. A dry run uploads nothing, and counts what it would upload.
  // REQUIRES: all arguments outlive this object; for a dry run, `before_large` or the tasks of
  // finish() load `seen_objects`.
  Uploads(const Remote& remote, SeenObjects& seen_objects, base::ThreadPool& pool,
          std::function<void()> before_large, bool dry_run = false);

  // Uploads the object if it is absent, now or in finish(). Threads: any.
  void add(const std::string& key, std::vector<std::byte> bytes);
  // Takes out objects that wait for finish(), the smallest first, up to this size in all; by key.
  // Those that replace damaged ones stay.
  std::map<std::string, std::vector<std::byte>> take_small(std::uint64_t most_bytes);
  // Uploads the remaining objects, concurrently with `tasks`; a dry run counts them afterwards.
  void finish(const std::vector<std::function<void()>>& tasks);

  // Whether an object already existed, and has another size. Asks for it unless the objects were
  // listed, which has ended later. REQUIRES: after finish().
  bool has_found_damage() const;

  // Without objects that already existed.
  std::uint64_t objects() const noexcept { return objects_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void put(const std::string& key, std::span<const std::byte> bytes);
  bool upload(const std::string& key, std::span<const std::byte> bytes);
  bool keep(const std::string& key, std::vector<std::byte>& bytes);

  const Remote& remote_;
  SeenObjects& seen_objects_;
  base::ThreadPool& pool_;
  const std::function<void()> before_large_;
  const bool dry_run_;
  std::once_flag asked_;
  std::mutex mutex_;  // guards the members below
  std::map<std::string, std::vector<std::byte>> kept_;
  std::uint64_t kept_bytes_ = 0;
  std::map<std::string, std::uint64_t>
      found_;  // objects that already existed, with the sizes of ours
  std::uint64_t objects_ = 0, bytes_ = 0;
};

}  // namespace vellum::remote

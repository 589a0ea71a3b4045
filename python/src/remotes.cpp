// Remotes of a store: push, pull and clone.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vellum/store.hpp>

#include "bindings.hpp"
#include "report.hpp"

namespace vellum::python {
namespace {

using Names = std::vector<std::string>;

void bind_push_report(nb::module_& module) {
  Report<RemoteInfo>(module, "RemoteInfo", "A remote of a store.")
      .field("name", &RemoteInfo::name, "Its name in this store.")
      .field(
          "url", [](const RemoteInfo& r) { return FileName{r.url}; }, "Its URL.")
      .field("one_writer", &RemoteInfo::one_writer, "Only this store may push to it.")
      .field(
          "lock_s", [](const RemoteInfo& r) { return r.lock.count(); },
          "The duration of the locks of its objects, in seconds; 0: none.");
  using Pushed = PushedVersion;
  Report<Pushed>(module, "PushedVersion", "A version of a push.")
      .field("name", &Pushed::name, "Its name.")
      .field("is_branch", &Pushed::is_branch, "A branch's head; otherwise a snapshot.")
      .field("was_there", &Pushed::was_there, "The remote had it already.")
      .field("epoch", &Pushed::epoch,
             "Of a branch: incremented each time that another store takes it over.");
  Report<PushReport>(module, "PushReport", "The result of a push.")
      .field("versions", &PushReport::versions, "A `PushedVersion` for each.")
      .field("objects_uploaded", &PushReport::objects_uploaded, "Objects that the push created.")
      .field("bytes_uploaded", &PushReport::bytes_uploaded, "Their size.")
      .field("pieces_used_again", &PushReport::pieces_used_again,
             "Pieces that the remote had already.");
}

void bind_pull_report(nb::module_& module) {
  using Pulled = PulledVersion;
  Report<Pulled>(module, "PulledVersion", "A version of a pull.")
      .field("name", &Pulled::name, "Its name.")
      .field("is_branch", &Pulled::is_branch, "A branch's head; otherwise a snapshot.")
      .field("was_there", &Pulled::was_there, "The store had it already.")
      .field("is_ahead", &Pulled::is_ahead,
             "A branch with commits of this store only; it is unchanged.")
      .field("is_older", &Pulled::is_older,
             "Ahead because the remote has lost commits: an older copy of itself.");
  Report<PullReport>(module, "PullReport", "The result of a pull.")
      .field("versions", &PullReport::versions, "A `PulledVersion` for each.")
      .field("pieces_read", &PullReport::pieces_read, "Pieces that were fetched.")
      .field("bytes_read", &PullReport::bytes_read, "Their size.");
}

}  // namespace

void bind_remotes(nb::module_& module, nb::class_<Store>& store) {
  bind_push_report(module);
  bind_pull_report(module);
  store.def("remotes", &Store::remotes, Unlocked())
      .def(
          "add_remote",
          [](Store& s, const std::string& name, const FileName& url, bool one_writer,
             std::int64_t lock_s) {
            AddRemoteOptions options;
            options.one_writer = one_writer;
            options.lock = std::chrono::seconds(lock_s);
            return s.add_remote(name, url.bytes, options);
          },
          nb::arg("name"), nb::arg("url"), nb::arg("one_writer"), nb::arg("lock_s"), Unlocked())
      .def("remove_remote", &Store::remove_remote, nb::arg("name"), Unlocked())
      .def(
          "push",
          [](Store& s, const std::string& remote, const Names& versions, bool take_over,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const WithoutLock unlocked;
            return s.push(remote, {versions, take_over}, report);
          },
          nb::arg("remote"), nb::arg("versions"), nb::arg("take_over"), nb::arg("progress").none())
      .def(
          "pull",
          [](Store& s, const std::string& remote, const Names& versions, bool packs, bool take_over,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const WithoutLock unlocked;
            return s.pull(remote, {versions, packs, take_over}, report);
          },
          nb::arg("remote"), nb::arg("versions"), nb::arg("packs"), nb::arg("take_over"),
          nb::arg("progress").none())
      .def_static(
          "clone",
          [](const FileName& url, const FileName& directory, const Names& versions, bool lazy,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const WithoutLock unlocked;
            return Store::clone(url.bytes, directory.bytes, {versions, lazy}, report);
          },
          nb::arg("url"), nb::arg("directory"), nb::arg("versions"), nb::arg("lazy"),
          nb::arg("progress").none());
}

}  // namespace vellum::python

// Remotes of a store: versions leave the machine, and come from others.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vellum/store.hpp>

#include "bindings.hpp"

namespace vellum::python {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Names = std::vector<std::string>;

void bind_push_report(nb::module_& module) {
  nb::class_<RemoteInfo>(module, "RemoteInfo", "A remote that a store knows.")
      .def_ro("name", &RemoteInfo::name)
      .def_ro("url", &RemoteInfo::url)
      .def_ro("one_writer", &RemoteInfo::one_writer)
      .def("__repr__",
           [](const RemoteInfo& r) { return "<remote '" + r.name + "': " + r.url + ">"; });
  nb::class_<PushedVersion>(module, "PushedVersion", "A version that a push was about.")
      .def_ro("name", &PushedVersion::name)
      .def_ro("is_branch", &PushedVersion::is_branch)
      .def_ro("was_there", &PushedVersion::was_there)
      .def_ro("epoch", &PushedVersion::epoch);
  nb::class_<PushReport>(module, "PushReport", "What a push did.")
      .def_ro("versions", &PushReport::versions)
      .def_ro("objects_uploaded", &PushReport::objects_uploaded)
      .def_ro("bytes_uploaded", &PushReport::bytes_uploaded)
      .def_ro("pieces_used_again", &PushReport::pieces_used_again);
}

void bind_pull_report(nb::module_& module) {
  nb::class_<PulledVersion>(module, "PulledVersion", "A version that a pull was about.")
      .def_ro("name", &PulledVersion::name)
      .def_ro("is_branch", &PulledVersion::is_branch)
      .def_ro("was_there", &PulledVersion::was_there)
      .def_ro("is_ahead", &PulledVersion::is_ahead);
  nb::class_<PullReport>(module, "PullReport", "What a pull or a clone did.")
      .def_ro("versions", &PullReport::versions)
      .def_ro("pieces_read", &PullReport::pieces_read)
      .def_ro("bytes_read", &PullReport::bytes_read);
}

}  // namespace

void bind_remotes(nb::module_& module, nb::class_<Store>& store) {
  bind_push_report(module);
  bind_pull_report(module);
  store.def("remotes", &Store::remotes, Unlocked())
      .def(
          "add_remote",
          [](Store& s, const std::string& name, const std::string& url, bool one_writer) {
            return s.add_remote(name, url, {one_writer});
          },
          nb::arg("name"), nb::arg("url"), nb::arg("one_writer"), Unlocked())
      .def("remove_remote", &Store::remove_remote, nb::arg("name"), Unlocked())
      .def(
          "push",
          [](Store& s, const std::string& remote, const Names& versions, bool take_over,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const nb::gil_scoped_release unlocked;
            return s.push(remote, {versions, take_over}, report);
          },
          nb::arg("remote"), nb::arg("versions"), nb::arg("take_over"), nb::arg("progress").none())
      .def(
          "pull",
          [](Store& s, const std::string& remote, const Names& versions, bool packs,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const nb::gil_scoped_release unlocked;
            return s.pull(remote, {versions, packs}, report);
          },
          nb::arg("remote"), nb::arg("versions"), nb::arg("packs"), nb::arg("progress").none())
      .def_static(
          "clone",
          [](const std::string& url, const std::string& directory, const Names& versions, bool lazy,
             nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const nb::gil_scoped_release unlocked;
            return Store::clone(url, directory, {versions, lazy}, report);
          },
          nb::arg("url"), nb::arg("directory"), nb::arg("versions"), nb::arg("lazy"),
          nb::arg("progress").none());
}

}  // namespace vellum::python

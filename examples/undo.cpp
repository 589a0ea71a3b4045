// Undo and redo in an editor: a drawing of points in plain memory, one version per edit.
//
//   undo add X Y    adds a point
//   undo undo       takes the last edit back
//   undo redo       does it again
//   undo show
//   undo tidy       keeps the last ten edits
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vellum/retention.hpp>
#include <vellum/store.hpp>

struct Point {
  double x, y;
};
struct Drawing {
  long edit;  // the number of the edit of this state
  long count;
  Point points[1000];
};

static std::string version_of(long edit) { return "edit-" + std::to_string(edit); }

// An edit after an undo starts another line: the redone edits are removed.
static void forget_redo(vellum::Store& store, long edit) {
  for (long next = edit; store.contains(version_of(next)); ++next) {
    store.remove_snapshot(version_of(next));
  }
}

static void show(const Drawing& drawing) {
  std::printf("edit %ld:", drawing.edit);
  for (long i = 0; i < drawing.count; ++i) {
    std::printf(" (%g, %g)", drawing.points[i].x, drawing.points[i].y);
  }
  std::printf("\n");
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "show";
  auto store = vellum::Store::open_or_create("drawing.store");
  auto region = store.open_or_create_region("main", sizeof(Drawing));
  auto& drawing = region.root<Drawing>();
  if (!store.contains(version_of(0))) region.snapshot(version_of(0), "empty");

  if (what == "add" && argc == 4 && drawing.count < 1000) {
    forget_redo(store, drawing.edit + 1);
    drawing.points[drawing.count++] = {std::atof(argv[2]), std::atof(argv[3])};
    ++drawing.edit;
    region.snapshot(version_of(drawing.edit), "add a point");  // the edit and its name, or neither
  } else if (what == "undo" || what == "redo") {
    const std::string wanted = version_of(drawing.edit + (what == "undo" ? -1 : 1));
    if (!store.contains(wanted)) return std::printf("nothing to %s\n", what.c_str()), 1;
    region.checkout(wanted, what);  // in place: `drawing` stays where it is
  } else if (what == "tidy") {
    vellum::RetentionPolicy policy;
    policy.keep_last = 10;
    vellum::forget(store, policy);
  }
  show(drawing);
}

/* Vellum from C: stores every name that it gets, and reads an old version.
 *
 *   hello STORE NAME
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vellum/vellum.h>

/* The content of the region, from its first byte. No pointers, so it works at any address. */
struct guest_book {
  uint64_t count;
  char names[63][64];
};

static void check(int result) {
  if (result != VELLUM_OK) {
    fprintf(stderr, "hello: %s (%s)\n", vellum_error_message(), vellum_errc_name(result));
    exit(1);
  }
}

static int print_version(const vellum_version_info* version, void* context) {
  (void)context;
  printf("  %-10s %s, commit %" PRIu64 "\n", version->name,
         version->is_branch ? "branch" : "snapshot", version->sequence);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: hello STORE NAME\n");
    return 2;
  }
  vellum_store* store = NULL;
  vellum_region* region = NULL;
  check(vellum_store_open_or_create(argv[1], NULL, &store));
  check(vellum_region_open_or_create(store, "main", sizeof(struct guest_book), NULL, &region));

  struct guest_book* book = vellum_region_data(region);
  snprintf(book->names[book->count++ % 63], sizeof book->names[0], "%s", argv[2]);
  char snapshot[32];
  snprintf(snapshot, sizeof snapshot, "guest-%" PRIu64, book->count);

  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  check(vellum_snapshot(region, snapshot, argv[2], &report));
  printf("Hello, %s. You are guest %" PRIu64 "; %" PRIu64 " bytes written in %.1f ms.\n", argv[2],
         book->count, report.bytes_written, (double)report.total_ns / 1e6);

  vellum_region* first = NULL;
  check(vellum_region_open_version(store, "guest-1", NULL, &first));
  const struct guest_book* then = vellum_region_data(first);
  printf("The first guest was %s. Versions:\n", then->names[0]);
  check(vellum_versions(store, print_version, NULL));

  vellum_region_close(first);
  vellum_region_close(region);
  vellum_store_close(store);
  return 0;
}

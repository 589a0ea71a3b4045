/* The C interface of a group: c_ranks RECORDS STORES URL. Each rank counts to 3, rolls the last step
 * back, and reads 2 from the remote. */
#include <stdio.h>
#include <stdlib.h>
#include <vellum/mpi.h>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const int result = (call);                                                              \
    if (result != VELLUM_OK) {                                                              \
      char reason[2200];                                                                    \
      snprintf(reason, sizeof reason, "%s: %d, %s", #call, result, vellum_error_message()); \
      vellum_abort_job(MPI_COMM_WORLD, reason, 1);                                          \
    }                                                                                       \
  } while (0)
#define REQUIRE(holds)                                                    \
  do {                                                                    \
    if (!(holds)) vellum_abort_job(MPI_COMM_WORLD, "not so: " #holds, 1); \
  } while (0)

/* Reads a partition of "two", in a directory of records or at the remote. */
static void expect_two(const char* records, uint32_t partitions, uint32_t partition) {
  vellum_group_version* version = NULL;
  CHECK(vellum_group_version_open(records, "two", NULL, &version));
  REQUIRE(vellum_group_version_partitions(version) == partitions);
  REQUIRE(vellum_group_version_number(version) != 0);
  vellum_region* region = NULL;
  CHECK(vellum_group_version_open_partition(version, partition, NULL, &region));
  REQUIRE(*(const uint64_t*)vellum_region_data(region) == 2);
  vellum_region_close(region);
  REQUIRE(vellum_group_version_open_partition(version, partitions, NULL, &region) ==
          VELLUM_ERR_INVALID_ARGUMENT);
  vellum_group_version_close(version);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(argc == 4);

  vellum_group* group = NULL;
  REQUIRE(vellum_group_open(MPI_COMM_WORLD, NULL, NULL, &group) == VELLUM_ERR_INVALID_ARGUMENT);
  vellum_group_options options = VELLUM_GROUP_OPTIONS_INIT;
  options.store = argv[2];
  options.region_bytes = 1 << 20;
  options.remote = argv[3];
  CHECK(vellum_group_open(MPI_COMM_WORLD, argv[1], &options, &group));
  REQUIRE(vellum_group_partitions(group) == (uint32_t)ranks);
  REQUIRE(vellum_group_size(group, (uint32_t)rank) == 1 << 20);
  REQUIRE(vellum_group_data(group, (uint32_t)ranks) == NULL);
  uint64_t* const count = vellum_group_data(group, (uint32_t)rank);

  *count = 1;
  vellum_group_report report = VELLUM_GROUP_REPORT_INIT;
  CHECK(vellum_group_commit(group, "one", &report));
  REQUIRE(report.number == vellum_group_number(group) && report.bytes_written > 0);
  *count = 2;
  vellum_pending_version* pending = NULL;
  CHECK(vellum_group_snapshot_async(group, "two", NULL, &pending));
  CHECK(vellum_group_wait(pending, &report));
  REQUIRE(vellum_group_snapshot(group, "two", NULL, NULL) == VELLUM_ERR_ALREADY_EXISTS);
  CHECK(vellum_group_grow(group, (uint32_t)rank, 2 << 20));
  *count = 3;
  CHECK(vellum_group_rollback(group));
  REQUIRE(*count == 2);

  expect_two(argv[1], (uint32_t)ranks, (uint32_t)(ranks - 1 - rank));

  vellum_group_push_report pushed = VELLUM_GROUP_PUSH_REPORT_INIT;
  CHECK(vellum_group_push(group, NULL, &pushed));
  REQUIRE(pushed.number == vellum_group_number(group) && pushed.bytes_uploaded > 0);
  vellum_pending_push* push = NULL;
  CHECK(vellum_group_push_async(group, "two", &push));
  CHECK(vellum_group_push_wait(push, NULL));
  REQUIRE(vellum_group_push(group, "absent", NULL) == VELLUM_ERR_NOT_FOUND);
  expect_two(argv[3], (uint32_t)ranks, (uint32_t)(ranks - 1 - rank));
  *count = 4;
  CHECK(vellum_group_commit(group, NULL, NULL));
  REQUIRE(vellum_group_restore(MPI_COMM_WORLD, argv[1], &options) == VELLUM_ERR_BUSY);
  vellum_group_close(group);
  CHECK(vellum_group_restore(MPI_COMM_WORLD, argv[1], &options));
  CHECK(vellum_group_open(MPI_COMM_WORLD, argv[1], &options, &group));
  REQUIRE(*(const uint64_t*)vellum_group_data(group, (uint32_t)rank) == 2);
  vellum_group_close(group);
  vellum_group_close(NULL);
  MPI_Finalize();
  return 0;
}

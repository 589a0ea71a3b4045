/* vellum/mpi.h: one version over many ranks of MPI, for C (vellum/mpi.hpp has the details).
 *
 *   vellum_group_options options = VELLUM_GROUP_OPTIONS_INIT;
 *   options.store = "/local/job/store-{}";     // "{}" stands for the partition's number
 *   options.region_bytes = 1 << 30;
 *   vellum_group *group = NULL;
 *   if (vellum_group_open(MPI_COMM_WORLD, "/shared/job/records", &options, &group) != VELLUM_OK) {
 *     vellum_abort_job(MPI_COMM_WORLD, vellum_error_message(), 1);
 *   }
 *   double *mine = vellum_group_data(group, rank);
 *   ...
 *   vellum_group_snapshot(group, "step-1000", NULL, NULL);   // on all ranks, or on none
 *   vellum_group_close(group);
 *
 * Errors, handles, units and structs are as in vellum/vellum.h. Functions are collective unless
 * noted: all ranks make the same calls in the same order, and an error on one rank is the result on
 * all of them. MPI must be initialised. vellum_group_version_open() of vellum/vellum.h, which reads
 * versions, needs no MPI and is not collective.
 */
#ifndef VELLUM_MPI_H
#define VELLUM_MPI_H

#include <mpi.h>
#include <vellum/vellum.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vellum_group vellum_group;
typedef struct vellum_pending_version vellum_pending_version;

typedef struct vellum_group_options {
  size_t struct_size;
  const char* store;     /* path of each partition's store; "{}" stands for its number */
  const char* branch;    /* NULL: "main" */
  uint64_t region_bytes; /* of each partition of a new group */
  uint32_t partitions;   /* of a new group; 0: one for each rank */
  const uint32_t* mine;  /* the partitions that this rank opens; NULL: its even share */
  size_t mine_count;
  const char* version;                 /* to continue from: a name or a number; NULL: the newest */
  const vellum_region_options* region; /* may be NULL */
  const vellum_store_options* new_store; /* of stores that are created; may be NULL */
  const char* remote;                    /* for vellum_group_push(); NULL: none */
} vellum_group_options;
#define VELLUM_GROUP_OPTIONS_INIT \
  {sizeof(vellum_group_options), NULL, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, NULL}

typedef struct vellum_group_report {
  size_t struct_size;
  uint64_t number;          /* of the global version */
  uint64_t bytes_written;   /* to the stores, by all ranks */
  uint64_t slowest_ns;      /* from the call until the slowest rank's commits are durable */
  uint64_t coordination_ns; /* the rest of the call */
  uint64_t own_ns;          /* from the call until this rank's commits are durable */
} vellum_group_report;
#define VELLUM_GROUP_REPORT_INIT {sizeof(vellum_group_report), 0, 0, 0, 0, 0}

/* Creates the group if there is none. VELLUM_ERR_BUSY: another job has it open. */
int vellum_group_open(MPI_Comm communicator, const char* records,
                      const vellum_group_options* options, vellum_group** out);
/* On all ranks, before MPI_Finalize(). Uncommitted stores are lost. */
void vellum_group_close(vellum_group* group);

/* Not collective; they cannot fail: 0 or NULL if none exists. Partitions are those of this rank.
 * */
uint32_t vellum_group_partitions(const vellum_group* group); /* of the whole group */
uint64_t vellum_group_number(const vellum_group* group);     /* of the last global version */
void* vellum_group_data(vellum_group* group, uint32_t partition);
uint64_t vellum_group_size(vellum_group* group, uint32_t partition);
/* As vellum_grow(). Not collective. */
int vellum_group_grow(vellum_group* group, uint32_t partition, uint64_t size_bytes);

/* A global version without a name, which is kept until the next one; and one with a name, which is
 * kept until it is removed. `message` and `report` may be NULL. After an error the last version
 * stays, memory is unchanged, and the next call includes everything. VELLUM_ERR_POISONED, and
 * VELLUM_ERR_BUSY after another job has taken over: open the group again. */
int vellum_group_commit(vellum_group* group, const char* message, vellum_group_report* report);
int vellum_group_snapshot(vellum_group* group, const char* name, const char* message,
                          vellum_group_report* report);
/* The call only finds and copies the dirty pages; vellum_group_wait(), or the next collective call,
 * creates the version. `name` NULL: as a commit. The wait frees `pending`. */
int vellum_group_snapshot_async(vellum_group* group, const char* name, const char* message,
                                vellum_pending_version** out);
int vellum_group_wait(vellum_pending_version* pending, vellum_group_report* report);
/* Resets all memory to the last global version. */
int vellum_group_rollback(vellum_group* group);

typedef struct vellum_group_push_report {
  size_t struct_size;
  uint64_t number;         /* of the version */
  uint64_t bytes_uploaded; /* by all ranks */
} vellum_group_push_report;
#define VELLUM_GROUP_PUSH_REPORT_INIT {sizeof(vellum_group_push_report), 0, 0}

typedef struct vellum_pending_push vellum_pending_push;

/* Makes a version durable in the remote, whole or not at all; `version` NULL: the last one. */
int vellum_group_push(vellum_group* group, const char* version, vellum_group_push_report* report);
/* The same in a thread of each rank. The version is at the remote when vellum_group_push_wait() has
 * returned, which frees `pending`. */
int vellum_group_push_async(vellum_group* group, const char* version, vellum_pending_push** out);
int vellum_group_push_wait(vellum_pending_push* pending, vellum_group_push_report* report);
/* Makes a version of `options->remote` the newest of the group again; lost stores are created
 * again. `options->version` NULL: the newest that is complete there. */
int vellum_group_restore(MPI_Comm communicator, const char* records,
                         const vellum_group_options* options);

/* Prints the reason on standard error, with the rank, waits until the launcher has read it, and
 * calls MPI_Abort() with the status. (MPICH's launcher drops the content of its pipes when a rank
 * aborts.) Not collective; does not return. */
void vellum_abort_job(MPI_Comm communicator, const char* reason, int status);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_MPI_H */

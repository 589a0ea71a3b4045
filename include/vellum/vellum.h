/* vellum/vellum.h: Vellum for C (C11 and later; fit for C++ and for foreign-function interfaces).
 *
 *   vellum_store *store = NULL;
 *   vellum_region *region = NULL;
 *   if (vellum_store_open_or_create("/data/s", NULL, &store) != VELLUM_OK ||
 *       vellum_region_open_or_create(store, "main", 1 << 30, NULL, &region) != VELLUM_OK) {
 *     fprintf(stderr, "%s\n", vellum_error_message());
 *     exit(1);
 *   }
 *   uint64_t *count = vellum_region_data(region);
 *   ++*count;
 *   vellum_commit(region, NULL, NULL);              // durable, all or nothing
 *   vellum_snapshot(region, "first", NULL, NULL);   // kept permanently, at the cost of the changes
 *   vellum_region_close(region);
 *   vellum_store_close(store);
 *
 * The terms are those of the C++ headers, which say more: a store is a directory; a region is a
 * range of plain memory; a branch is a mutable line of versions with one writer; a commit is the
 * durable step; a snapshot is a version with a name.
 *
 * ERRORS. A function that returns int returns VELLUM_OK (0) or a vellum_errc. After an error
 * vellum_error_message() tells a person what is wrong and where; it belongs to the calling thread
 * and stays until that thread's next failing call. An output argument (`out`) is set to NULL, and a
 * struct left alone, when the call fails. No C++ exception leaves the library.
 *
 * HANDLES. vellum_store, vellum_region and vellum_pin are opaque and belong to the caller, who
 * closes each once; closing NULL does nothing. A region keeps its store open: the two may be closed
 * in any order. Pins go before their region.
 *
 * UNITS. Sizes, offsets and lengths are bytes, times nanoseconds, and names UTF-8 strings of 1 to
 * 200 bytes: letters, digits and . _ + - (or UTF-8), not starting with '.' or '-'. Strings that go
 * in are copied. Where the manual says "may be NULL", NULL means the default or "not wanted";
 * nowhere else is NULL allowed: it gives VELLUM_ERR_INVALID_ARGUMENT.
 *
 * THREADS. Loads and stores need no more care than in plain memory. Functions may be called from
 * any thread; commits, snapshots, rollbacks and grows of one region take turns. A handle must not
 * be used during or after its own close.
 *
 * STRUCTS that start with struct_size grow at their end in later releases. The caller sets
 * struct_size to sizeof the struct before the call (VELLUM_..._INIT does); fields that one side
 * does not know are left alone, or taken as 0.
 *
 * SYSTEM CALLS, SIGNALS, FORK. A pointer into a region may be passed to read(2), write(2) and the
 * like only for pages that are present: call vellum_pin_range() first. The first region installs
 * handlers for SIGBUS and SIGSEGV, which pass on faults elsewhere. A page that cannot be read back
 * gives SIGBUS, never wrong data; vellum_prefetch() gives an error instead. A forked child does not
 * have the region.
 */
#ifndef VELLUM_VELLUM_H
#define VELLUM_VELLUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ---- */

typedef enum vellum_errc {
  VELLUM_OK = 0,
  VELLUM_ERR_INVALID_ARGUMENT = 1, /* a value outside its range, a malformed name, NULL */
  VELLUM_ERR_NOT_FOUND = 2,        /* no such store, branch, snapshot */
  VELLUM_ERR_ALREADY_EXISTS = 3,   /* the name is taken */
  VELLUM_ERR_NOT_A_STORE = 4,      /* the path exists, but is not a Vellum store */
  VELLUM_ERR_NEWER_FORMAT = 5,     /* written by a newer Vellum: nothing is touched */
  VELLUM_ERR_BUSY = 6,             /* another writer holds the branch; a fixed address is taken */
  VELLUM_ERR_READ_ONLY = 7,        /* the medium, the store or the region cannot be written */
  VELLUM_ERR_NO_SPACE = 8,         /* disk full: the last commit stays, the region stays usable */
  VELLUM_ERR_IO = 9,               /* the operating system refused (EIO, EACCES, ...) */
  VELLUM_ERR_CORRUPTED = 10,       /* bytes on disk fail their checks */
  VELLUM_ERR_POISONED = 11,        /* an earlier flush failed: reopen the branch */
  VELLUM_ERR_UNSUPPORTED = 12,     /* this kernel or build cannot do it */
  VELLUM_ERR_OUT_OF_MEMORY = 13    /* address space, memory, descriptors refused */
} vellum_errc;

/* A short, stable name ("not_found") for logs. Never NULL; "unknown" for a number that is none. */
const char* vellum_errc_name(int code);

/* The message of this thread's last failing call. Never NULL; "" before the first failure. */
const char* vellum_error_message(void);

/* ---- Stores ---- */

typedef struct vellum_store vellum_store;

enum {
  VELLUM_COMPRESSION_DEFAULT = 0,
  VELLUM_COMPRESSION_NONE = 1,
  VELLUM_COMPRESSION_LZ4 = 2,
  VELLUM_COMPRESSION_ZSTD = 3
};

enum { VELLUM_HASH_NONE = 0, VELLUM_HASH_SHA256 = 1 };

/* Fixed when a store is made. A field of 0 means the default, which needs no tuning. */
typedef struct vellum_store_options {
  size_t struct_size;
  int compression;             /* VELLUM_COMPRESSION_... */
  int compression_level;       /* zstd 1..19 */
  uint32_t block_bytes;        /* pages compressed together: 4 KiB..128 MiB, a power of two */
  uint32_t journal_half_bytes; /* 64 KiB..64 MiB */
  uint64_t pack_bytes;         /* size at which a pack file is sealed: 1 MiB..1 TiB */
  int fixed_blocks;            /* 1: blocks never grow where their pages compress little */
  int no_filters;              /* 1: no byte planes or differences of words before compression */
  int no_dedup;                /* 1: a page that the store already holds is stored again */
  int no_deltas;               /* 1: a changed page is stored whole */
  int hash;                    /* VELLUM_HASH_...: kept with every block, beside its checksum */
} vellum_store_options;
#define VELLUM_STORE_OPTIONS_INIT {sizeof(vellum_store_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Makes a store. `path` must not exist, or be an empty directory; its parent must exist. `options`
 * may be NULL. */
int vellum_store_create(const char* path, const vellum_store_options* options, vellum_store** out);
int vellum_store_open(const char* path, vellum_store** out);
/* `options` may be NULL; they matter only when the store is made. */
int vellum_store_open_or_create(const char* path, const vellum_store_options* options,
                                vellum_store** out);
void vellum_store_close(vellum_store* store);

/* ---- Regions ---- */

typedef struct vellum_region vellum_region;

enum {
  VELLUM_ENGINE_AUTOMATIC = 0,
  VELLUM_ENGINE_UFFD = 1,
  VELLUM_ENGINE_SIGSEGV = 2,
  VELLUM_ENGINE_MAPPED = 3
};

/* How a commit finds the stores (vellum/tracker.hpp, vellum/cards.h). */
enum {
  VELLUM_TRACKER_PAGES = 0,          /* the kernel says which pages */
  VELLUM_TRACKER_CARDS = 1,          /* marks behind stores; an unmarked store is lost */
  VELLUM_TRACKER_CARDS_AND_PAGES = 2 /* both; nothing is lost */
};

/* A field of 0 means the default. */
typedef struct vellum_region_options {
  size_t struct_size;
  int engine;              /* VELLUM_ENGINE_... */
  int fixed_address;       /* 1: map at the first opening's address, or VELLUM_ERR_BUSY */
  uint64_t capacity_bytes; /* address space to reserve for vellum_grow(): by default the larger of
                              4 times the region and 64 GiB */
  uint64_t base_address;   /* with fixed_address: the address, a multiple of 2 MiB */
  int encode_threads;      /* that help to commit: by default one less than the processors, at most
                              7; -1: none */
  const vellum_store_options* encoding; /* how this region's commits are stored (sizes of packs
                                           and journals do not count); NULL: as the branch was
                                           made. Kept when the branch is made with it, else for
                                           this opening only */
  const char* image_path; /* the plain file that VELLUM_ENGINE_MAPPED maps; naming one chooses that
                             engine. NULL: the file of the last time, or one in the store */
  uint64_t memory_limit_bytes; /* limit of the region's memory; 0: it shares three quarters of
                                  the machine's or cgroup's with the others of the process */
  const char* spill_directory; /* for written pages that memory has no room for; NULL: the store */
  uint32_t fault_bytes;        /* how much one fault brings in: a power of two from 4096 to 262144;
                                  0: 65536 */
  int huge_pages;  /* 1: vellum_prefetch() puts pages of a version into pages of 2 MiB, which
                      stay */
  int working_set; /* 1: remember which pages were touched, in the store, and bring them in at the
                      next opening, which does not wait; VELLUM_ENGINE_MAPPED ignores it */
  int over_reservation; /* 1: base_address and capacity_bytes, multiples of 4096, are a range that
                           the caller has reserved: the region is mapped over it, and leaves it
                           reserved when it is closed */
  int tracker;          /* VELLUM_TRACKER_...: how a branch's commits find the stores */
  int verify_cards;     /* 1: a commit that finds an unmarked store is VELLUM_ERR_CORRUPTED, and
                           names its page. For tests: it is slow */
  int no_background_gc; /* 1: unneeded space stays until `vellum gc`, also on a full disk; by
                           default it is given back while the region writes */
} vellum_region_options;
#define VELLUM_REGION_OPTIONS_INIT \
  {sizeof(vellum_region_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Makes a branch with a region of zero bytes, rounded up to pages of 4096. `options` may be NULL
 * here and below. VELLUM_ERR_ALREADY_EXISTS. */
int vellum_region_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                         const vellum_region_options* options, vellum_region** out);
/* Opens a branch to write. VELLUM_ERR_BUSY when another writer has it, here or elsewhere. */
int vellum_region_open(vellum_store* store, const char* branch,
                       const vellum_region_options* options, vellum_region** out);
/* Opens a branch, grown if it is smaller, or makes it. */
int vellum_region_open_or_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                                 const vellum_region_options* options, vellum_region** out);
/* Opens a snapshot, or a branch's head as it is now, to read: a store there is a SIGSEGV. Takes no
 * lock; any number may be open, also beside the writer. */
int vellum_region_open_version(vellum_store* store, const char* name,
                               const vellum_region_options* options, vellum_region** out);
/* Unmaps. Uncommitted stores are lost. */
void vellum_region_close(vellum_region* region);

/* These cannot fail: NULL or 0 for a NULL region. */
void* vellum_region_data(const vellum_region* region); /* page-aligned; stays the same */
uint64_t vellum_region_size(const vellum_region* region);
uint64_t vellum_region_capacity(const vellum_region* region);
int vellum_region_writable(const vellum_region* region);      /* 1 or 0 */
uint64_t vellum_region_sequence(const vellum_region* region); /* of the last commit */

/* ---- Commits and snapshots ---- */

typedef struct vellum_commit_report {
  size_t struct_size;
  uint64_t sequence;      /* of the version that is now the head */
  uint64_t pages_dirty;   /* found by the tracker */
  uint64_t pages_changed; /* of these, pages whose bytes differ from the last commit */
  uint64_t bytes_written; /* to journal and packs */
  uint64_t scan_ns, encode_ns, write_ns, flush_ns, publish_ns; /* the stages in order */
  uint64_t total_ns;                                           /* their sum */
  int checkpointed;  /* 1: went to packs, with the journal's earlier commits */
  uint64_t pause_ns; /* for an asynchronous commit: the duration of the call */
} vellum_commit_report;
#define VELLUM_COMMIT_REPORT_INIT {sizeof(vellum_commit_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Makes everything stored since the last commit durable, in one step. `message` and `report` may be
 * NULL. VELLUM_ERR_NO_SPACE, VELLUM_ERR_IO: the commit has not happened, the last one stays, memory
 * is unchanged, and a later commit includes everything. VELLUM_ERR_POISONED: a flush failed now or
 * earlier; open the branch again. */
int vellum_commit(vellum_region* region, const char* message, vellum_commit_report* report);

/* vellum_commit(), then keeps that state under `name`. VELLUM_ERR_ALREADY_EXISTS: nothing is
 * committed. */
int vellum_snapshot(vellum_region* region, const char* name, const char* message,
                    vellum_commit_report* report);

/* Like vellum_commit() and vellum_snapshot(), but the call only finds and copies the written pages;
 * stores after the call are not included. The rest runs in a thread of the region's own. The next
 * call that changes the region, and vellum_region_close(), wait for its end. `out` may be NULL, if
 * its outcome is not wanted; after an error the next commit includes everything, as usual. */
typedef struct vellum_pending vellum_pending;
int vellum_commit_async(vellum_region* region, const char* message, vellum_pending** out);
int vellum_snapshot_async(vellum_region* region, const char* name, const char* message,
                          vellum_pending** out);
/* 1: it has ended, with or without an error. */
int vellum_pending_ended(const vellum_pending* pending);
/* Waits for the end, and returns the result of vellum_commit() or vellum_snapshot(). Frees
 * `pending`, which may outlive the region. `report` may be NULL. */
int vellum_wait(vellum_pending* pending, vellum_commit_report* report);

/* Forgets everything stored since the last commit. No other thread may use the region meanwhile. */
int vellum_rollback(vellum_region* region);

/* Makes the region larger, in place: new bytes are zero, and durable with the next commit.
 * VELLUM_ERR_INVALID_ARGUMENT beyond the capacity or below the size. */
int vellum_grow(vellum_region* region, uint64_t size_bytes);

/* The size of the plain file that the region stands for, as vellum_export() writes it: the region's
 * size, unless vellum_resize_file() or vellum_import() has set another. 0 for NULL. */
uint64_t vellum_region_file_size(const vellum_region* region);
/* Sets that size; durable with the next commit. A file larger than the region grows the region. In
 * a shorter file the bytes past its end become zero, and the region keeps its size.
 * VELLUM_ERR_INVALID_ARGUMENT beyond the capacity. */
int vellum_resize_file(vellum_region* region, uint64_t file_bytes);

/* ---- Bringing memory in ---- */

typedef struct vellum_pin vellum_pin;

/* Brings a range in and keeps it until vellum_unpin(): system calls work on it. VELLUM_ERR_CORRUPTED
 * or VELLUM_ERR_IO when a page cannot be read. */
int vellum_pin_range(const vellum_region* region, const void* address, size_t length_bytes,
                     vellum_pin** out);
void vellum_unpin(vellum_pin* pin);

/* Makes a range zero. Zero bytes are not written again, nor brought in. For freed memory: zeros
 * take no space in a version. VELLUM_ERR_READ_ONLY. */
int vellum_zero(vellum_region* region, void* address, size_t length_bytes);

/* Brings a range in, without keeping it. */
int vellum_prefetch(const vellum_region* region, const void* address, size_t length_bytes);

enum {
  VELLUM_ADVICE_NORMAL = 0,     /* reading in order is noticed, and read ahead */
  VELLUM_ADVICE_SEQUENTIAL = 1, /* it will be read in order */
  VELLUM_ADVICE_RANDOM = 2,     /* it will not */
  VELLUM_ADVICE_WILL_NEED = 3,  /* start to bring it in; the call does not wait */
  VELLUM_ADVICE_DONT_NEED = 4   /* it may leave memory. Nothing is lost, unlike with madvise(2) */
};

/* Advises how the program will use a range. Advice changes when pages come in and go out, never
 * their content. `advice`: VELLUM_ADVICE_..., or VELLUM_ERR_INVALID_ARGUMENT. See region.hpp. */
int vellum_advise(const vellum_region* region, const void* address, size_t length_bytes,
                  int advice);

/* ---- Versions ---- */

/* The strings belong to the library and last until the callback returns. */
typedef struct vellum_version_info {
  size_t struct_size;
  const char* name;
  int is_branch;      /* 1: a branch's head; 0: a snapshot */
  const char* branch; /* the branch it was made on */
  const char* message;
  const char* parent; /* the snapshot before it on its line; "": none */
  uint64_t sequence;  /* commits on its line */
  int64_t time_ns;    /* of the commit, since 1970-01-01 UTC */
  uint64_t region_bytes;
  uint64_t pages_changed;               /* since the parent */
  uint64_t bytes_added;                 /* to packs, since the parent */
  const vellum_store_options* encoding; /* of a branch: how its commits are stored (sizes of packs
                                           and journals are 0); NULL: as the store says */
  uint64_t file_bytes; /* of region_bytes, the plain file's: see vellum_region_file_size() */
  int64_t created_ns;  /* when the snapshot was made, or the branch */
  uint64_t order;      /* for a snapshot: larger than all earlier snapshots' order; 0: a branch */
} vellum_version_info;

/* 0 continues, any other value stops. It may call Vellum; it must not throw or longjmp. */
typedef int (*vellum_version_fn)(const vellum_version_info* version, void* context);

/* Calls `visit` for each version: snapshots in order of creation, then branches by name.
 * Stopping early is no error. */
int vellum_versions(const vellum_store* store, vellum_version_fn visit, void* context);

/* Its commits are stored as those of the branch `from_version`, or as the store says. */
int vellum_create_branch(vellum_store* store, const char* name, const char* from_version);
/* Stored as `encoding` says, for all openings (sizes of packs and journals do not count). */
int vellum_create_branch_with(vellum_store* store, const char* name, const char* from_version,
                              const vellum_store_options* encoding);
int vellum_create_snapshot(vellum_store* store, const char* name, const char* from_version,
                           const char* message /* may be NULL */);
/* Makes a branch of a snapshot, under the same name; for a branch it does nothing. */
int vellum_make_writable(vellum_store* store, const char* name);
/* Removes a snapshot, or a branch (VELLUM_ERR_BUSY while it has a writer). Other versions stay
 * whole. The space comes back while regions are written, or by `vellum gc`. */
int vellum_remove(vellum_store* store, const char* name);

/* Reads bytes of a version without mapping it. Past its end: VELLUM_ERR_INVALID_ARGUMENT. */
int vellum_read(const vellum_store* store, const char* name, uint64_t offset_bytes, void* buffer,
                size_t length_bytes);

/* Writes a version as a plain sparse file (which must not exist), durable on return. */
int vellum_export(const vellum_store* store, const char* name, const char* file);
/* Makes a plain file the content of a branch, in one commit; the branch is made when it does not
 * exist. `message` and `report` may be NULL. */
int vellum_import(vellum_store* store, const char* branch, const char* file, const char* message,
                  vellum_commit_report* report);

/* ---- The store as a whole ---- */

typedef struct vellum_store_stat {
  size_t struct_size;
  uint64_t stored_bytes;                         /* on the medium: st_blocks of every file */
  uint64_t pack_bytes, journal_bytes, ref_bytes; /* by file size */
  uint64_t packs, snapshots, branches;
  uint64_t full_copy_bytes; /* size of sparse full copies of every snapshot and head */
} vellum_store_stat;
#define VELLUM_STORE_STAT_INIT {sizeof(vellum_store_stat), 0, 0, 0, 0, 0, 0, 0, 0}

int vellum_stat(const vellum_store* store, vellum_store_stat* stat);

typedef struct vellum_verify_summary {
  size_t struct_size;
  uint64_t versions, packs, records, bytes_read; /* what was checked */
  uint64_t damages;                              /* 0: all is well */
} vellum_verify_summary;
#define VELLUM_VERIFY_SUMMARY_INIT {sizeof(vellum_verify_summary), 0, 0, 0, 0, 0}

/* Checks the store: refs, journals, page maps and presence of packs; with `read_data` every byte
 * that a version needs. VELLUM_OK: no damage found. VELLUM_ERR_CORRUPTED: damage found; `summary`,
 * which may be NULL, is filled in all the same, and vellum_error_message() names the first damage.
 * Another error: the check could not be made. */
int vellum_verify(const vellum_store* store, int read_data, vellum_verify_summary* summary);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_VELLUM_H */

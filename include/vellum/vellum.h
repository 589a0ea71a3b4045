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
 *   vellum_snapshot(region, "first", NULL, NULL);   // kept until removed, costs the changes
 *   vellum_region_close(region);
 *   vellum_store_close(store);
 *
 * The terms are those of the C++ headers, which have the details: a store is a directory; a region
 * is a range of plain memory; a branch is a mutable line of versions with one writer; a commit is
 * the durable step; a snapshot is a version with a name.
 *
 * ERRORS. A function that returns int returns VELLUM_OK (0) or a vellum_errc. After an error
 * vellum_error_message() describes the cause and its place; it belongs to the calling thread and
 * stays until that thread's next failing call. When the call fails, an output argument (`out`) is
 * set to NULL, and a struct is not changed. No C++ exception leaves the library.
 *
 * HANDLES. vellum_store, vellum_region, vellum_transaction and vellum_pin are opaque and belong to
 * the caller, who closes each once; closing NULL does nothing. They may be closed in any order: a
 * region keeps its store open, and a transaction or a pin keeps its region open.
 *
 * UNITS. Sizes, offsets and lengths are bytes, times nanoseconds, and names UTF-8 strings of 1 to
 * 200 bytes: letters, digits and . _ + - (or UTF-8), not starting with '.' or '-'. Argument strings
 * are copied. Where a comment says "may be NULL", NULL means the default or "not wanted"; every
 * other NULL gives VELLUM_ERR_INVALID_ARGUMENT. An array of length 0 may be NULL. Memory of a
 * region is named by address and length, bytes of a version by offset and length;
 * VELLUM_ERR_INVALID_ARGUMENT when they are not all inside it.
 *
 * THREADS. Loads and stores need no more care than in plain memory. Functions may be called from
 * any thread. Calls that change one region run one at a time; region.hpp (THREADS) has the rules
 * for stores during a commit. A handle must not be used during or after its own close.
 *
 * STRUCTS that start with struct_size grow at their end in later releases. The caller sets
 * struct_size to sizeof the struct before the call (VELLUM_..._INIT does); fields that one side
 * does not know are not changed, or taken as 0.
 *
 * SYSTEM CALLS, SIGNALS, FORK. A pointer into a region may be passed to system calls such as
 * read(2) and write(2) only for pages that are present: call vellum_pin_range() first. The first
 * region installs handlers for SIGBUS and SIGSEGV, which pass other faults on. A page that cannot
 * be read back gives SIGBUS, never wrong data; vellum_prefetch() returns an error instead. A child
 * of fork(2) does not have the region: a touch is a SIGSEGV, and its functions return
 * VELLUM_ERR_INVALID_ARGUMENT.
 */
#ifndef VELLUM_VELLUM_H
#define VELLUM_VELLUM_H

#include <stddef.h>
#include <stdint.h>
#include <vellum/version.h>

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
  VELLUM_ERR_NEWER_FORMAT = 5,     /* written by a newer Vellum: nothing is changed */
  VELLUM_ERR_BUSY = 6,             /* another writer holds the branch; a fixed address is taken */
  VELLUM_ERR_READ_ONLY = 7,        /* the medium, the store or the region cannot be written */
  VELLUM_ERR_NO_SPACE = 8,         /* disk full: the last commit stays, the region stays usable */
  VELLUM_ERR_IO = 9,               /* the operating system refused (EIO, EACCES, ...) */
  VELLUM_ERR_CORRUPTED = 10,       /* bytes on disk fail their checks */
  VELLUM_ERR_POISONED = 11,        /* an earlier flush failed: reopen the branch */
  VELLUM_ERR_UNSUPPORTED = 12,     /* this kernel or build cannot do it */
  VELLUM_ERR_OUT_OF_MEMORY = 13,   /* address space, memory, descriptors refused */
  VELLUM_ERR_STOPPED = 14,         /* the program's own callback ended the call */
  VELLUM_ERR_WRONG_KEY = 15,       /* the store is encrypted: no key, or one that does not fit */
  VELLUM_ERR_UNTRUSTED = 16        /* not signed by a wanted key, or not what was signed */
} vellum_errc;

/* A short, stable name ("not_found") for logs. Never NULL; "unknown" for a number that is none. */
const char* vellum_errc_name(int code);

/* The message of this thread's last failing call. Never NULL; "" before the first failure. */
const char* vellum_error_message(void);

/* "1.2.3": the version of the library that runs, which may be newer than this header's
 * (VELLUM_VERSION_STRING, vellum/version.h). */
const char* vellum_version(void);

/* ---- Progress ---- */

/* Long calls have one as an argument, which may be NULL, and call it periodically in the thread of
 * the call. `total` is 0 when it is unknown; `unit` is a word such as "bytes". 0 continues. Any
 * other value ends the call: VELLUM_ERR_STOPPED. The store stays whole. It must not throw or
 * longjmp. */
typedef int (*vellum_progress_fn)(uint64_t done, uint64_t total, const char* unit, void* context);

/* ---- Stores ---- */

typedef struct vellum_store vellum_store;

enum {
  VELLUM_COMPRESSION_DEFAULT = 0,
  VELLUM_COMPRESSION_NONE = 1,
  VELLUM_COMPRESSION_LZ4 = 2,
  VELLUM_COMPRESSION_ZSTD = 3
};

enum { VELLUM_HASH_NONE = 0, VELLUM_HASH_SHA256 = 1 };

/* How changed pages are stored. A field of 0 means the default, which needs no tuning. See
 * encoding.hpp. */
typedef struct vellum_encoding {
  size_t struct_size;
  int compression;       /* VELLUM_COMPRESSION_... */
  int compression_level; /* zstd 1..19; deltas take at least 4 */
  uint32_t block_bytes;  /* pages compressed together: 4 KiB..128 MiB, a power of two; in
                            vellum_region_options at most 1 MiB or the store's own, whichever is
                            more */
  int fixed_blocks;      /* 1: blocks never grow where their pages compress little */
  int no_filters;        /* 1: no byte planes or differences of words before compression */
  int no_dedup;          /* 1: no references to duplicate pages or differences to similar ones */
  int no_deltas;         /* 1: a changed page is stored whole */
  int hash;              /* VELLUM_HASH_...: stored with every block, in addition to its checksum */
} vellum_encoding;
#define VELLUM_ENCODING_INIT {sizeof(vellum_encoding), 0, 0, 0, 0, 0, 0, 0, 0}

/* Fixed when a store is created. A field of 0 means the default, which needs no tuning. */
typedef struct vellum_store_options {
  size_t struct_size;
  const vellum_encoding* encoding; /* of its regions, unless a branch was created or is opened with
                                      another one; NULL: the default */
  uint64_t pack_bytes;             /* size at which a pack file is sealed: 1 MiB..1 TiB */
  uint32_t journal_half_bytes;     /* of small commits that the packs may lack: 64 KiB..64 MiB */
  int encrypt; /* 1: encrypt its files; the secret is that of vellum_set_key_source(). An existing
                  plain store is then not opened */
} vellum_store_options;
#define VELLUM_STORE_OPTIONS_INIT {sizeof(vellum_store_options), NULL, 0, 0, 0}

/* Where the secrets of encrypted stores come from: files and a shell command, never a secret
 * itself. NULL: none. See vellum/key.hpp. */
typedef struct vellum_key_source {
  size_t struct_size;
  const char* passphrase_file; /* its first line is a passphrase */
  const char* key_file;        /* its bytes, at least 32 */
  const char* identity_file;   /* of age */
  const char* recipient;       /* of age; only to create a store */
  const char* command;         /* the first line of its output is the secret */
  const char* fingerprint;     /* of the data keys that stores may have; NULL: any */
  int encrypted_only;          /* 1: refuse plain stores (VELLUM_ERR_WRONG_KEY) */
} vellum_key_source;
#define VELLUM_KEY_SOURCE_INIT {sizeof(vellum_key_source), NULL, NULL, NULL, NULL, NULL, NULL, 0}

/* The source of all later openings in this process, and of the first key slot of a new store. NULL,
 * and until the first call: that of the environment (VELLUM_PASSPHRASE_FILE, VELLUM_KEY_FILE,
 * VELLUM_IDENTITY_FILE, VELLUM_KEY_COMMAND, VELLUM_KEY_FINGERPRINT, VELLUM_ENCRYPTED_ONLY). */
int vellum_set_key_source(const vellum_key_source* source);

/* The private key with which this process signs each snapshot that it makes: a file in PEM or
 * OpenSSH's format (vellum/signature.hpp). "": none. NULL: that of VELLUM_SIGN_KEY_FILE. */
int vellum_set_sign_key_file(const char* path);

/* Creates a store. `path` must not exist, or be an empty directory; its parent must exist.
 * `options` may be NULL. */
int vellum_store_create(const char* path, const vellum_store_options* options, vellum_store** out);
/* Opens a directory, or the URL of a remote (s3://bucket/prefix, file:///mnt/x), whose versions can
 * then be read without a clone: see vellum::Store::open() in store.hpp. */
int vellum_store_open(const char* path, vellum_store** out);

/* How a store is read from a remote. NULL and 0 mean the value of the environment, or else the
 * default (remote_options.hpp). */
typedef struct vellum_remote_options {
  size_t struct_size;
  const char* cache_directory; /* for copies of fetched data; "": none */
  uint64_t cache_bytes;        /* above this, the oldest copies are removed */
  uint64_t longest_wait_ms;    /* the timeout for an unresponsive remote */
} vellum_remote_options;
#define VELLUM_REMOTE_OPTIONS_INIT {sizeof(vellum_remote_options), NULL, 0, 0}

/* The same, only for a URL. `options` may be NULL. */
int vellum_store_open_remote(const char* url, const vellum_remote_options* options,
                             vellum_store** out);
/* `options` may be NULL; they are used only when the store is created. */
int vellum_store_open_or_create(const char* path, const vellum_store_options* options,
                                vellum_store** out);
void vellum_store_close(vellum_store* store);

/* The path, which the store owns. Cannot fail: NULL for NULL. */
const char* vellum_store_path(const vellum_store* store);
/* The options with which the store was created; a default has its value here. `encoding` belongs to
 * the handle and is valid until it is closed. */
int vellum_store_get_options(const vellum_store* store, vellum_store_options* options);
/* 32 hex digits and a 0. */
int vellum_store_id(const vellum_store* store, char id[33]);

/* ---- Regions ---- */

typedef struct vellum_region vellum_region;

enum {
  VELLUM_ENGINE_AUTOMATIC = 0,
  VELLUM_ENGINE_UFFD = 1,
  VELLUM_ENGINE_SIGSEGV = 2,
  VELLUM_ENGINE_MAPPED = 3
};

/* A short, stable name ("uffd"). Never NULL; "unknown" for a number that is none. */
const char* vellum_engine_name(int engine);

/* How a commit finds the stores (vellum/tracker.hpp, vellum/cards.h). */
enum {
  VELLUM_TRACKER_PAGES = 0,          /* the kernel reports pages */
  VELLUM_TRACKER_CARDS = 1,          /* marks after stores; an unmarked store is lost */
  VELLUM_TRACKER_CARDS_AND_PAGES = 2 /* both; nothing is lost */
};

/* A field of 0 means the default; flags of features that are on by default have the opposite sense.
 * Details: region_options.hpp. */
typedef struct vellum_region_options {
  size_t struct_size;
  int engine;              /* VELLUM_ENGINE_... */
  int fixed_address;       /* 1: map at the first opening's address, or VELLUM_ERR_BUSY */
  uint64_t capacity_bytes; /* address space to reserve for vellum_grow(): by default the larger of
                              4 times the region and 64 GiB, or less under ulimit -v, -d, -f */
  uint64_t base_address;   /* with fixed_address: the address, a multiple of 2 MiB */
  int encode_threads;      /* that help to commit: by default one less than the processors, at most
                              7; -1: none */
  const vellum_encoding* encoding; /* of this region's commits; NULL: the branch's, or else the
                                      store's. Stored with a branch that is created with it,
                                      otherwise for this opening only */
  const char* image_path;      /* the plain file that VELLUM_ENGINE_MAPPED maps; a path selects that
                             engine. NULL: the file of the last opening, or one in the store */
  uint64_t memory_limit_bytes; /* limit of the region's memory; 0: it shares three quarters of
                                  the machine's or cgroup's with the others of the process */
  const char*
      spill_directory;  /* of the spill file: dirty pages beyond the limit; NULL: the store */
  uint32_t fault_bytes; /* the unit of loading and eviction: a power of two from 4096 to
                                  262144; 0: 65536 */
  int huge_pages;  /* 1: vellum_prefetch() moves pages of a version into huge pages of 2 MiB, which
                      are not evicted */
  int working_set; /* 1: record which pages were touched, in the store, and load them at the next
                      opening, which does not wait; VELLUM_ENGINE_MAPPED ignores it */
  int over_reservation; /* 1: base_address and capacity_bytes, multiples of 4096, are a range that
                           the caller has reserved: the region is mapped over it, and leaves it
                           reserved when it is closed */
  int tracker;          /* VELLUM_TRACKER_...: how a branch's commits find the stores */
  int verify_cards;     /* 1: a commit that finds an unmarked store is VELLUM_ERR_CORRUPTED, and
                           names its page. For tests: it is slow */
  int no_background_gc; /* 1: unneeded space stays until `vellum gc`, also on a full disk; by
                           default it is freed in the background while the region is written */
  int image_is_content; /* 1: the region opens with the content of the file at image_path, whatever
                           the branch had. See mapped.hpp */
  int keep_copies;  /* 1: a library thread does not free second copies of written pages that have
                           gone cold. For a program whose threads block SIGSEGV, or store to the
                           region in a handler of it */
  int fault_thread; /* 1: with engine uffd, a library thread serves page faults, instead of
                           handlers of signals: RegionOptions::fault_thread in region_options.hpp */
  int share;        /* 1: processes of one user that open the same version with this option share
                           its pages: RegionOptions::share in region_options.hpp */
} vellum_region_options;
#define VELLUM_REGION_OPTIONS_INIT \
  {sizeof(vellum_region_options),  \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   NULL,                           \
   NULL,                           \
   0,                              \
   NULL,                           \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0}

/* Creates a branch with a region that is all zero, its size rounded up to pages of 4096 bytes.
 * `options` may be NULL here and below. VELLUM_ERR_ALREADY_EXISTS. */
int vellum_region_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                         const vellum_region_options* options, vellum_region** out);
/* Opens a branch to write. VELLUM_ERR_BUSY when another writer has it, in any process. */
int vellum_region_open(vellum_store* store, const char* branch,
                       const vellum_region_options* options, vellum_region** out);
/* Opens a branch, grown if it is smaller, or creates it. */
int vellum_region_open_or_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                                 const vellum_region_options* options, vellum_region** out);
/* Opens a snapshot, or a branch's current head, to read: a store to its memory is a SIGSEGV. Takes
 * no lock; any number may be open, also while a writer works. */
int vellum_region_open_version(vellum_store* store, const char* name,
                               const vellum_region_options* options, vellum_region** out);
/* Unmaps the memory, unless a transaction or a pin keeps the region open. Uncommitted stores are
 * lost. */
void vellum_region_close(vellum_region* region);
/* Closes the region, but the memory stays in place with its content: a mapping of the process from
 * vellum_region_data() on for vellum_region_capacity() bytes, which the caller must unmap
 * (munmap(2)). After an error the handle must still be closed. VELLUM_ERR_UNSUPPORTED unless the
 * engine is VELLUM_ENGINE_MAPPED: only its pages need no fault handler. */
int vellum_region_close_and_leave_memory(vellum_region* region);

/* These cannot fail: NULL or 0 for a NULL region. */
void* vellum_region_data(const vellum_region* region); /* page-aligned; constant */
uint64_t vellum_region_size(const vellum_region* region);
uint64_t vellum_region_capacity(const vellum_region* region);
int vellum_region_writable(const vellum_region* region);      /* 1 or 0 */
uint64_t vellum_region_sequence(const vellum_region* region); /* of the last commit */
int vellum_region_engine(const vellum_region* region);        /* in use; AUTOMATIC only for NULL */
/* 1: system calls accept pages that are not in memory: Region::serves_system_calls() in region.hpp.
 * */
int vellum_region_serves_system_calls(const vellum_region* region);
/* The branch, or the version that was opened. The region owns it. */
const char* vellum_region_name(const vellum_region* region);

/* A region's pages in memory now, counted page by page (0.5 to 4 ms for 1 GiB), and the pages
 * evicted since it was opened. With VELLUM_ENGINE_MAPPED the kernel manages the pages, and only
 * limit_bytes is set. */
typedef struct vellum_memory_use {
  size_t struct_size;
  uint64_t limit_bytes;         /* of the region, or of the process when it has none of its own */
  uint64_t resident_bytes;      /* base copies and the program's copies */
  uint64_t evicted_bytes;       /* total since the opening */
  uint64_t spilled_pages;       /* dirty, and only in the spill file */
  uint64_t spill_file_bytes;    /* space that the spill file occupies */
  uint64_t spill_written_bytes; /* total written to it since the opening */
  uint64_t shared_bytes;        /* of the resident bytes, those that other processes may share */
} vellum_memory_use;
#define VELLUM_MEMORY_USE_INIT {sizeof(vellum_memory_use), 0, 0, 0, 0, 0, 0, 0}
int vellum_region_memory_use(const vellum_region* region, vellum_memory_use* use);

/* A range of a region's memory, for calls that accept several. */
typedef struct vellum_span {
  const void* address;
  size_t length_bytes;
} vellum_span;

/* ---- Commits and snapshots ---- */

typedef struct vellum_commit_report {
  size_t struct_size;
  uint64_t sequence;      /* of the version that is now the head */
  uint64_t pages_dirty;   /* found by the tracker */
  uint64_t pages_changed; /* of these, pages whose bytes differ from the last commit */
  uint64_t bytes_written; /* to journal and packs */
  uint64_t scan_ns, encode_ns, write_ns, flush_ns, publish_ns; /* the stages in order */
  uint64_t total_ns;                                           /* their sum */
  int checkpointed;  /* 1: written to packs, with the journal's earlier commits */
  uint64_t pause_ns; /* for an asynchronous commit: the duration of the call */
} vellum_commit_report;
#define VELLUM_COMMIT_REPORT_INIT {sizeof(vellum_commit_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Makes everything stored since the last commit durable, in one atomic step. `message` and `report`
 * may be NULL. After an error the commit has not happened, the last one is the head, the memory is
 * unchanged, and a later commit includes everything. VELLUM_ERR_NO_SPACE, VELLUM_ERR_IO.
 * VELLUM_ERR_POISONED: a flush failed now or earlier; open the branch again, which has the last
 * commit that returned, or the one that failed, whole. */
int vellum_commit(vellum_region* region, const char* message, vellum_commit_report* report);

/* Like vellum_commit(), but scans only the `count` spans of `written`, which saves a scan of the
 * whole region. Whole pages count; spans may overlap. A store outside of them is in the next
 * vellum_commit() or vellum_snapshot(), or in the next vellum_commit_ranges() with a span that
 * contains it. With VELLUM_TRACKER_CARDS the marks count instead. */
int vellum_commit_ranges(vellum_region* region, const vellum_span* written, size_t count,
                         const char* message, vellum_commit_report* report);

/* vellum_commit(), and keeps that state under `name`, in one step: after an error neither the
 * commit nor the name exists. VELLUM_ERR_ALREADY_EXISTS. */
int vellum_snapshot(vellum_region* region, const char* name, const char* message,
                    vellum_commit_report* report);

/* Like vellum_commit() and vellum_snapshot(), but the call only finds and copies the dirty pages;
 * stores after the call are not included. A thread of the region does the rest. The next call that
 * changes the region, and vellum_region_close(), wait for its end. `out` may be NULL if the result
 * is not wanted; after an error the next commit includes everything, as usual. */
typedef struct vellum_pending vellum_pending;
int vellum_commit_async(vellum_region* region, const char* message, vellum_pending** out);
int vellum_snapshot_async(vellum_region* region, const char* name, const char* message,
                          vellum_pending** out);
/* 1: it has ended, with or without an error. */
int vellum_pending_ended(const vellum_pending* pending);
/* Waits for the end, and returns the result of vellum_commit() or vellum_snapshot(). Frees
 * `pending`, which may outlive the region. `report` may be NULL. */
int vellum_wait(vellum_pending* pending, vellum_commit_report* report);

/* Discards everything stored since the last commit. No other thread may use the region meanwhile.
 * Errors: see Region::rollback(). */
int vellum_rollback(vellum_region* region);

/* Replaces the region's content and sizes by those of a version of the store, and commits that.
 * Uncommitted stores are discarded, as by vellum_rollback(). `version` is a snapshot, or any name
 * that vellum_resolve() takes ("main~2"); `message` and `report` may be NULL. After an error the
 * memory is as the last commit left it. No other thread may use the region meanwhile. */
int vellum_checkout(vellum_region* region, const char* version, const char* message,
                    vellum_commit_report* report);

/* Drops this process's private copies of pages that equal the last commit. With
 * VELLUM_ENGINE_MAPPED these pages are the image's again, in the page cache, and the memory of the
 * copies is free; with other engines nothing happens. REQUIRES: nothing in these spans has been
 * stored to since the last commit, nor is during the call. */
int vellum_drop_copies(vellum_region* region, const vellum_span* spans, size_t count);

/* A transaction: stores that are committed together or rolled back.
 *
 *   vellum_transaction *transaction = NULL;
 *   int result = vellum_begin(region, &transaction);
 *   if (result == VELLUM_OK) result = transfer(accounts, from, to, amount);
 *   if (result == VELLUM_OK) result = vellum_transaction_commit(transaction, NULL, NULL);
 *   vellum_transaction_close(transaction);   // rolls back, unless it was committed
 *
 * It rolls back to the last commit: stores from before vellum_begin() belong to it. While it is
 * open, commits, snapshots, vellum_rollback(), vellum_checkout() and another vellum_begin() of the
 * region return VELLUM_ERR_BUSY, in every thread; vellum_grow() belongs to it. Loads and stores of
 * all threads continue, and all stores belong to it: no other thread may use the region while it is
 * rolled back. In a child of fork(2) it does nothing. */
typedef struct vellum_transaction vellum_transaction;
int vellum_begin(vellum_region* region, vellum_transaction** out);
/* As vellum_commit(). It ends the transaction; the handle must still be closed. After an error the
 * transaction is still open, with all of its stores: remove the cause and call again, or roll it
 * back. VELLUM_ERR_INVALID_ARGUMENT when it is not open. */
int vellum_transaction_commit(vellum_transaction* transaction, const char* message,
                              vellum_commit_report* report);
/* As vellum_rollback(). It ends the transaction; the handle must still be closed. */
int vellum_transaction_rollback(vellum_transaction* transaction);
int vellum_transaction_is_open(const vellum_transaction* transaction); /* 1 or 0; 0 for NULL */
/* Rolls back a transaction that is still open. If that fails, it prints a line on standard error,
 * and the region refuses commits (VELLUM_ERR_POISONED) until a vellum_rollback() succeeds, or the
 * branch is opened again. */
void vellum_transaction_close(vellum_transaction* transaction);

/* Makes the region larger, in place: new bytes are zero, and durable with the next commit.
 * VELLUM_ERR_INVALID_ARGUMENT beyond the capacity or below the size. */
int vellum_grow(vellum_region* region, uint64_t size_bytes);

/* The size of the plain file that the region represents, as vellum_export() writes it: the region's
 * size, unless vellum_resize_file() or vellum_import() has set another. 0 for NULL. */
uint64_t vellum_region_file_size(const vellum_region* region);
/* Sets that size; durable with the next commit. A file larger than the region grows the region, and
 * by `room_bytes` more, so that frequent small appends need not grow the region each time. In a
 * shorter file the bytes past its end become zero, and the region keeps its size.
 * VELLUM_ERR_INVALID_ARGUMENT beyond the capacity. */
int vellum_resize_file(vellum_region* region, uint64_t file_bytes, uint64_t room_bytes);

/* ---- Loading memory ---- */

typedef struct vellum_pin vellum_pin;

/* Loads a range and keeps it in memory until vellum_unpin(), also across commits: system calls work
 * on it. Pinned pages are never evicted, also beyond the memory limit. VELLUM_ERR_CORRUPTED or
 * VELLUM_ERR_IO when a page cannot be read; VELLUM_ERR_OUT_OF_MEMORY when the kernel refuses
 * memory. */
int vellum_pin_range(const vellum_region* region, const void* address, size_t length_bytes,
                     vellum_pin** out);
void vellum_unpin(vellum_pin* pin);

/* Sets a range to zero. Bytes that are zero are not written again, nor loaded. For freed memory:
 * zeros take no space in a version. VELLUM_ERR_READ_ONLY. */
int vellum_zero(vellum_region* region, void* address, size_t length_bytes);

/* Loads a range, without keeping it. */
int vellum_prefetch(const vellum_region* region, const void* address, size_t length_bytes);

/* The same for several spans, such as the rows of a batch. All that they need from a remote is
 * requested at once. */
int vellum_prefetch_ranges(const vellum_region* region, const vellum_span* spans, size_t count);

enum {
  VELLUM_ADVICE_NORMAL = 0,     /* reading in order is detected, and read ahead */
  VELLUM_ADVICE_SEQUENTIAL = 1, /* read in order */
  VELLUM_ADVICE_RANDOM = 2,     /* not read in order */
  VELLUM_ADVICE_WILL_NEED = 3,  /* start to load it; the call does not wait */
  VELLUM_ADVICE_DONT_NEED = 4   /* evict it. Nothing is lost, unlike with madvise(2) */
};

/* Advice on the use of a range. It changes when pages are loaded and evicted, never their content.
 * `advice`: VELLUM_ADVICE_..., or VELLUM_ERR_INVALID_ARGUMENT. See Region::advise(). */
int vellum_advise(const vellum_region* region, const void* address, size_t length_bytes,
                  int advice);

/* ---- Versions ---- */

/* The strings belong to the library and last until the callback returns. */
typedef struct vellum_version_info {
  size_t struct_size;
  const char* name;
  int is_branch;      /* 1: a branch's head; 0: a snapshot */
  const char* branch; /* the branch on which it was created */
  const char* message;
  const char* parent; /* the snapshot before it on its line; "": none */
  uint64_t sequence;  /* commits on its line */
  int64_t time_ns;    /* of the commit, since 1970-01-01 UTC */
  uint64_t region_bytes;
  uint64_t pages_changed;          /* since the parent */
  uint64_t bytes_added;            /* to packs, since the parent */
  const vellum_encoding* encoding; /* of a branch: of its commits; NULL: the store's */
  uint64_t file_bytes; /* of region_bytes, the plain file's: see vellum_region_file_size() */
  int64_t created_ns;  /* when the snapshot or the branch was created */
  uint64_t order;      /* for a snapshot: larger than all earlier snapshots' order; 0: a branch */
} vellum_version_info;

/* 0 continues, any other value stops. It may call Vellum; it must not throw or longjmp. */
typedef int (*vellum_version_fn)(const vellum_version_info* version, void* context);

/* Calls `visit` for each version: snapshots in order of creation, then branches by name.
 * Stopping early is no error. */
int vellum_versions(const vellum_store* store, vellum_version_fn visit, void* context);
/* Calls `visit` for one version. VELLUM_ERR_NOT_FOUND. */
int vellum_find_version(const vellum_store* store, const char* name, vellum_version_fn visit,
                        void* context);

/* `encoding` applies to the branch's commits of all openings. NULL: the encoding of the branch
 * `from_version`, or else the store's. */
int vellum_create_branch(vellum_store* store, const char* name, const char* from_version,
                         const vellum_encoding* encoding);
int vellum_create_snapshot(vellum_store* store, const char* name, const char* from_version,
                           const char* message /* may be NULL */);
/* Converts a snapshot into a branch of the same name; for a branch it does nothing. */
int vellum_convert_to_branch(vellum_store* store, const char* name);
/* Gives a branch another name (VELLUM_ERR_BUSY while it has a writer). Snapshots keep the name of
 * the branch that they were created on. */
int vellum_rename_branch(vellum_store* store, const char* from, const char* to);
/* Removes a snapshot, or a branch (VELLUM_ERR_BUSY while it has a writer). Other versions stay
 * whole. The space is freed while regions are written, or by vellum_gc(). */
int vellum_remove(vellum_store* store, const char* name);

/* The plain file that was last a branch's image (vellum_region_options.image_path). */
typedef struct vellum_branch_image {
  size_t struct_size;
  const char* path; /* lasts until the callback returns */
  int in_use;       /* 1: now, or until a crash: the next opening with it repairs it */
  int changed; /* 1: replaced or written since, when it is not in use; the next opening takes its
                       current content */
} vellum_branch_image;
typedef void (*vellum_branch_image_fn)(const vellum_branch_image* image, void* context);
/* Calls `visit` once, or not at all: the branch never had an image, or only one in the store. */
int vellum_find_branch_image(const vellum_store* store, const char* branch,
                             vellum_branch_image_fn visit, void* context);

/* The number of snapshots that each rule keeps; 0: none. keep_last keeps the newest ones, the
 * others the newest of each of the newest days, weeks (from Monday), months or years that have any.
 * */
typedef struct vellum_retention_policy {
  size_t struct_size;
  uint32_t keep_last, keep_daily, keep_weekly, keep_monthly, keep_yearly;
  const char* branch; /* NULL: all branches, each separately */
  const char* prefix; /* only snapshots whose names begin with it; NULL: all */
} vellum_retention_policy;
#define VELLUM_RETENTION_POLICY_INIT {sizeof(vellum_retention_policy), 0, 0, 0, 0, 0, 0, 0}

/* `kept_by` has the names of the rules that keep the snapshot ("last", "daily", ...),
 * `kept_by_count` of them; 0: no rule keeps it. 0 continues, any other value stops. It may call
 * Vellum, and thus remove the snapshot. */
typedef int (*vellum_retention_fn)(const vellum_version_info* snapshot, const char* const* kept_by,
                                   size_t kept_by_count, void* context);
/* Calls `visit` for every snapshot that the policy considers, by branch and then newest first. It
 * removes nothing. VELLUM_ERR_INVALID_ARGUMENT for a policy without any rule. Stopping early is no
 * error. */
int vellum_decide_retention(const vellum_store* store, const vellum_retention_policy* policy,
                            vellum_retention_fn visit, void* context);

/* Removes the snapshots that no rule keeps, then calls `visit`, which may be NULL, as
 * vellum_decide_retention() does. */
int vellum_forget(vellum_store* store, const vellum_retention_policy* policy,
                  vellum_retention_fn visit, void* context);

/* The name of the version that `version` denotes, such as "main~2", "main@{yesterday}" or "latest":
 * every call that reads a version accepts these, too. `name` gets it with its final 0.
 * VELLUM_ERR_NOT_FOUND; VELLUM_ERR_INVALID_ARGUMENT, also when it does not fit into `name_bytes`
 * (256 are enough). */
int vellum_resolve(const vellum_store* store, const char* version, char* name, size_t name_bytes);

/* ---- Content ---- */

typedef struct vellum_byte_range {
  uint64_t offset_bytes, length_bytes;
} vellum_byte_range;

typedef struct vellum_diff_totals {
  size_t struct_size;
  uint64_t pages_compared; /* byte by byte, because their page maps differ */
  uint64_t pages_different, bytes_different, ranges;
} vellum_diff_totals;
#define VELLUM_DIFF_TOTALS_INIT {sizeof(vellum_diff_totals), 0, 0, 0, 0}

/* 0 continues, any other value ends the call: VELLUM_ERR_STOPPED. */
typedef int (*vellum_range_fn)(const vellum_byte_range* range, void* context);
/* Calls `visit` for every maximal run of differing bytes, ascending. The cost is proportional to
 * the difference. `visit` and `totals` may be NULL. */
int vellum_diff(const vellum_store* store, const char* a, const char* b, vellum_range_fn visit,
                void* context, vellum_diff_totals* totals);

/* A range that differs, and its bytes on both sides: zeros past the end of a side. They are valid
 * until the callback returns. */
typedef struct vellum_diff_range {
  vellum_byte_range range;
  const void* a;
  const void* b;
} vellum_diff_range;
typedef int (*vellum_diff_range_fn)(const vellum_diff_range* range, void* context);
/* vellum_diff() with the bytes. Ranges consist of whole units of `granularity_bytes`, from offset 0
 * on; one of more than 1 MiB is visited in parts. `totals` may be NULL. */
int vellum_diff_bytes(const vellum_store* store, const char* a, const char* b,
                      uint64_t granularity_bytes, vellum_diff_range_fn visit, void* context,
                      vellum_diff_totals* totals);

/* Reads bytes of a version without mapping it. Past its end: VELLUM_ERR_INVALID_ARGUMENT. */
int vellum_read(const vellum_store* store, const char* name, uint64_t offset_bytes, void* buffer,
                size_t length_bytes);

/* Writes a version as a plain sparse file (which must not exist), durable on return. */
int vellum_export(const vellum_store* store, const char* name, const char* file,
                  vellum_progress_fn progress, void* context);
/* Replaces the content of a branch by a plain file, in one commit; a missing branch is created.
 * `message` and `report` may be NULL. */
int vellum_import(vellum_store* store, const char* branch, const char* file, const char* message,
                  vellum_commit_report* report, vellum_progress_fn progress, void* context);
/* Writes the next bytes to `to` and returns their number; 0: no more. A negative number ends the
 * import, which leaves the branch as it was: VELLUM_ERR_STOPPED. */
typedef int64_t (*vellum_read_fn)(void* to, size_t capacity_bytes, void* context);
/* The same as vellum_import(), from the bytes that `read` returns, which may be more or fewer than
 * `expected_bytes`. Both callbacks get `context`. */
int vellum_import_stream(vellum_store* store, const char* branch, vellum_read_fn read,
                         uint64_t expected_bytes, const char* message, vellum_commit_report* report,
                         vellum_progress_fn progress, void* context);
/* The same, from a version of another store: its content becomes the branch's. */
int vellum_import_version(vellum_store* store, const char* branch, const vellum_store* from,
                          const char* name, const char* message, vellum_commit_report* report,
                          vellum_progress_fn progress, void* context);

/* ---- The store as a whole ---- */

typedef struct vellum_store_stat {
  size_t struct_size;
  uint64_t stored_bytes;                         /* on the medium: st_blocks of every file */
  uint64_t pack_bytes, journal_bytes, ref_bytes; /* by file size */
  uint64_t packs, snapshots, branches;
  uint64_t full_copy_bytes;              /* size of sparse full copies of every snapshot and head */
  uint64_t pack_needed_bytes;            /* of packs: bytes that a version needs, or has open */
  uint64_t pack_freeable_bytes;          /* of packs: bytes that vellum_gc() would free */
  uint64_t archive_packs, archive_bytes; /* of packs and pack_bytes: in archives */
  uint64_t cache_copies, cache_bytes;    /* of packs, in caches; only counted here */
} vellum_store_stat;
#define VELLUM_STORE_STAT_INIT {sizeof(vellum_store_stat), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* A version's bytes in the packs: its pages and deltas, and its page map. */
typedef struct vellum_version_space {
  size_t struct_size;
  const char* name; /* lasts until the callback returns */
  int is_branch;
  uint64_t region_bytes;
  uint64_t nonzero_bytes; /* of them, in pages that are not all zero */
  uint64_t unique_bytes;  /* needed by no other version: freed if only this one is removed */
  uint64_t shared_bytes;  /* others need them, too */
} vellum_version_space;
typedef void (*vellum_version_space_fn)(const vellum_version_space* space, void* context);

/* `visit`, which may be NULL, gets every version: snapshots, then branches, by name. */
int vellum_stat(const vellum_store* store, vellum_store_stat* stat, vellum_version_space_fn visit,
                void* context);

typedef struct vellum_gc_options {
  size_t struct_size;
  int dry_run;          /* 1: only report the space to be freed; works on a read-only medium */
  int recompress_level; /* 1 to 19: also rewrite the packs without a writer, at this level of zstd;
                           slow. 0: do not */
} vellum_gc_options;
#define VELLUM_GC_OPTIONS_INIT {sizeof(vellum_gc_options), 0, 0}

typedef struct vellum_gc_report {
  size_t struct_size;
  uint64_t snapshots, branches; /* whose data stays */
  uint64_t open_versions;       /* open in any process: their data stays, named or not */
  uint64_t packs, packs_removed, packs_punched;
  uint64_t copies_removed;     /* from caches, of packs that were removed or changed */
  uint64_t pack_bytes;         /* that packs occupied on the medium before */
  uint64_t needed_bytes;       /* of them, record by record */
  uint64_t freeable_bytes;     /* of them, in whole blocks that nothing needs */
  uint64_t freed_bytes;        /* 0 in a dry run */
  int holes_supported;         /* 0: without holes, only whole packs could be freed */
  uint64_t packs_recompressed; /* in a dry run: that would be, with sizes from samples */
  uint64_t recompressed_from_bytes, recompressed_to_bytes;
  uint64_t packs_in_use; /* not recompressed: a process has a version open */
} vellum_gc_report;
#define VELLUM_GC_REPORT_INIT \
  {sizeof(vellum_gc_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Frees the space of data that no version needs, concurrently with readers and writers in any
 * process. `options`, `report` and `progress` may be NULL. VELLUM_ERR_BUSY: another collection is
 * running. See Store::collect_garbage() in store.hpp. */
int vellum_gc(vellum_store* store, const vellum_gc_options* options, vellum_gc_report* report,
              vellum_progress_fn progress, void* context);

typedef struct vellum_verify_options {
  size_t struct_size;
  int read_data; /* 1: every byte that a version needs; 0: refs, journals, page maps, and the
                    presence of packs */
} vellum_verify_options;
#define VELLUM_VERIFY_OPTIONS_INIT {sizeof(vellum_verify_options), 0}

typedef struct vellum_verify_report {
  size_t struct_size;
  uint64_t versions, packs, records, bytes_read; /* what was checked */
  uint64_t damages;                              /* 0: no damage */
} vellum_verify_report;
#define VELLUM_VERIFY_REPORT_INIT {sizeof(vellum_verify_report), 0, 0, 0, 0, 0}

/* One object that fails its checks. The strings are valid until the callback returns. */
typedef struct vellum_damage {
  size_t struct_size;
  const char* object; /* the file, with the offset of the record if it is one */
  const char* reason;
  const char* const* versions; /* that need it, version_count of them */
  size_t version_count;
} vellum_damage;
typedef void (*vellum_damage_fn)(const vellum_damage* damage, void* context);

/* Checks the store. VELLUM_OK: no damage found. VELLUM_ERR_CORRUPTED: damage found; `report` is
 * filled nevertheless, `visit` has been called for each damage, and vellum_error_message() names
 * the first. Another error: the check failed. `options`, `report` and the callbacks, which get
 * `context`, may be NULL. */
int vellum_verify(const vellum_store* store, const vellum_verify_options* options,
                  vellum_verify_report* report, vellum_damage_fn visit, vellum_progress_fn progress,
                  void* context);

typedef struct vellum_repair_options {
  size_t struct_size;
  int dry_run;         /* 1: only read, and report what can be saved */
  int include_removed; /* 1: also versions without a name, which were presumably removed */
} vellum_repair_options;
#define VELLUM_REPAIR_OPTIONS_INIT {sizeof(vellum_repair_options), 0, 0}

typedef struct vellum_repair_report {
  size_t struct_size;
  uint64_t saved; /* versions in the new store; in a dry run: that can be saved */
  uint64_t
      exact; /* of them, as they were; the others are older states, or have no name of their own */
  uint64_t lost;
  uint64_t pages_written;
} vellum_repair_report;
#define VELLUM_REPAIR_REPORT_INIT {sizeof(vellum_repair_report), 0, 0, 0, 0}

/* A version that is saved, or is lost. The strings are valid until the callback returns. */
typedef struct vellum_repaired_version {
  size_t struct_size;
  const char* name;   /* in the new store; of a lost one "snapshot 'a'", "branch 'main'" */
  const char* reason; /* why it is lost: names file and offset. NULL: it is saved */
  const char* origin; /* of a saved one: "snapshot 'a'", "branch 'main'", or where it was found */
  int is_branch;
  int exact; /* see vellum_repair_report */
  uint64_t sequence, region_bytes;
} vellum_repaired_version;
typedef void (*vellum_repair_fn)(const vellum_repaired_version* version, void* context);

/* Saves every version of the corrupted store at `path` that is whole into a new store, which must
 * not exist; the corrupted store is only read. In a dry run `destination` may be NULL.
 * VELLUM_ERR_CORRUPTED: versions are lost; the others are saved, and `report` is filled,
 * nevertheless. `options`, `report` and the callbacks, which get `context`, may be NULL. */
int vellum_repair(const char* path, const char* destination, const vellum_repair_options* options,
                  vellum_repair_report* report, vellum_repair_fn visit, vellum_progress_fn progress,
                  void* context);

/* ---- Tiers: see tier.hpp ---- */

enum { VELLUM_TIER_HOME = 0, VELLUM_TIER_ARCHIVE = 1, VELLUM_TIER_CACHE = 2 };

typedef struct vellum_tier {
  size_t struct_size;
  int kind;              /* VELLUM_TIER_... */
  const char* directory; /* lasts until the callback returns */
  int present;           /* 1: the directory exists and has this tier's id */
  int writable;          /* 1: its tier id names this store, not the original of a copy */
  uint64_t packs, bytes; /* on the medium; known when it is present */
  uint64_t limit_bytes;  /* for vellum_apply_tiers(); 0: none */
} vellum_tier;
typedef void (*vellum_tier_fn)(const vellum_tier* tier, void* context);

/* Calls `visit` for home first, then for the others in the order in which they were added. */
int vellum_tiers(const vellum_store* store, vellum_tier_fn visit, void* context);
/* The directory is created, or is empty, or was this tier before. */
int vellum_add_archive(vellum_store* store, const char* directory);
int vellum_add_cache(vellum_store* store, const char* directory, uint64_t limit_bytes);
/* VELLUM_ERR_BUSY when it is an archive that holds packs: move them home first. */
int vellum_remove_tier(vellum_store* store, const char* directory);
/* Sets the limit of home ("") or of a cache. */
int vellum_limit_tier(vellum_store* store, const char* directory, uint64_t limit_bytes);

typedef struct vellum_tier_move {
  size_t struct_size;
  int to_home;         /* 1: home; 0: to the archive */
  int has_home_bytes;  /* 1: home_bytes counts */
  uint64_t home_bytes; /* to the archive: only until packs at home occupy no more than this; to
                          home: only while they occupy no more */
  uint64_t keep_last;  /* to the archive: not what a branch's head or one of the newest N snapshots
                          needs to open */
  int dry_run;
} vellum_tier_move;
#define VELLUM_TIER_MOVE_INIT {sizeof(vellum_tier_move), 0, 0, 0, 0, 0}

typedef struct vellum_tier_report { /* in a dry run: the planned work */
  size_t struct_size;
  uint64_t packs_moved, moved_bytes;
  uint64_t packs_in_use;                              /* not moved: a process has a version open */
  uint64_t copies_made, copied_bytes, copies_removed; /* in caches */
  uint64_t home_bytes;                                /* that packs occupy at home afterwards */
} vellum_tier_report;
#define VELLUM_TIER_REPORT_INIT {sizeof(vellum_tier_report), 0, 0, 0, 0, 0, 0, 0}

/* Moves packs that no branch will write again. `report` and `progress` may be NULL.
 * VELLUM_ERR_NOT_FOUND: there is no archive. */
int vellum_move_packs(vellum_store* store, const vellum_tier_move* move, vellum_tier_report* report,
                      vellum_progress_fn progress, void* context);

typedef struct vellum_apply_tiers_options {
  size_t struct_size;
  int dry_run;
} vellum_apply_tiers_options;
#define VELLUM_APPLY_TIERS_OPTIONS_INIT {sizeof(vellum_apply_tiers_options), 0}

/* Applies the limits. `options`, `report` and `progress` may be NULL. */
int vellum_apply_tiers(vellum_store* store, const vellum_apply_tiers_options* options,
                       vellum_tier_report* report, vellum_progress_fn progress, void* context);

/* ---- Remotes: see remote.hpp ---- */

typedef struct vellum_remote_info {
  size_t struct_size;
  const char* name; /* the strings are valid until the callback returns */
  const char* url;
  int one_writer;  /* 1: only this store may push there */
  uint64_t lock_s; /* the duration of the locks of its objects, in seconds; 0: none */
} vellum_remote_info;
typedef void (*vellum_remote_fn)(const vellum_remote_info* remote, void* context);

/* Calls `visit` for each remote of the store, sorted by name. */
int vellum_remotes(const vellum_store* store, vellum_remote_fn visit, void* context);

typedef struct vellum_add_remote_options {
  size_t struct_size;
  int one_writer; /* 1: only this store will push to the remote, which must be new */
  /* Lock each object for so many seconds (S3 Object Lock; AddRemoteOptions::lock of remote.hpp);
   * 0: none, unless another store has locked the remote. */
  uint64_t lock_s;
} vellum_add_remote_options;
#define VELLUM_ADD_REMOTE_OPTIONS_INIT {sizeof(vellum_add_remote_options), 0, 0}

/* Adds a remote, after a probe of its server. `options` may be NULL. VELLUM_ERR_UNSUPPORTED: two
 * creators of one object can both succeed at the server, and one_writer is 0; or nothing can be
 * locked there. */
int vellum_add_remote(vellum_store* store, const char* name, const char* url,
                      const vellum_add_remote_options* options);
int vellum_remove_remote(vellum_store* store, const char* name);

/* A version of a push or a pull. */
typedef struct vellum_moved_version {
  size_t struct_size;
  const char* name; /* lasts until the callback returns */
  int is_branch;
  int was_there;  /* 1: nothing to do */
  int is_ahead;   /* of a pull: 1: a branch with local commits, which stays */
  uint64_t epoch; /* of a pushed branch */
} vellum_moved_version;
typedef void (*vellum_moved_fn)(const vellum_moved_version* version, void* context);

typedef struct vellum_push_options {
  size_t struct_size;
  const char* const* versions; /* ends with NULL; NULL: all snapshots and branches */
  int take_over; /* 1: also branches that another store has pushed since; its last push is lost */
  int dry_run;   /* 1: only reports what would be uploaded */
} vellum_push_options;
#define VELLUM_PUSH_OPTIONS_INIT {sizeof(vellum_push_options), 0, 0, 0}

typedef struct vellum_push_report {
  size_t struct_size;
  uint64_t objects_uploaded, bytes_uploaded; /* without the head that names them */
  uint64_t pieces_used_again;
} vellum_push_report;
#define VELLUM_PUSH_REPORT_INIT {sizeof(vellum_push_report), 0, 0, 0}

/* Sends versions to a remote, all or none. `options`, `report` and the callbacks, which get
 * `context`, may be NULL. Errors: see Store::push(). */
int vellum_push(vellum_store* store, const char* remote, const vellum_push_options* options,
                vellum_push_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                void* context);

typedef struct vellum_replicate_options {
  size_t struct_size;
  uint64_t interval_ms; /* the age of the oldest commit that a lost machine loses; 0: 1000 */
  int take_over;        /* as vellum_push_options.take_over */
} vellum_replicate_options;
#define VELLUM_REPLICATE_OPTIONS_INIT {sizeof(vellum_replicate_options), 0, 0}

typedef struct vellum_replicate_state {
  size_t struct_size;
  uint64_t pushes, versions, bytes_uploaded;
  uint64_t behind_ms;  /* since the oldest commit that is not at the remote was noticed; 0: none */
  const char* failure; /* of the last push, lasts until the callback returns; NULL: none */
} vellum_replicate_state;
/* 0 continues; another value ends the replication. */
typedef int (*vellum_replicate_fn)(const vellum_replicate_state* state, void* context);

/* Sends each commit and each new snapshot to the remote at `url`, in the calling thread, until
 * `told`, which is called about ten times per second, ends it; then once more. `options` may be
 * NULL. VELLUM_ERR_IO: the last push failed. See Store::replicate(). */
int vellum_replicate(vellum_store* store, const char* url, const vellum_replicate_options* options,
                     vellum_replicate_fn told, void* context);

typedef struct vellum_pull_options { /* also of a clone */
  size_t struct_size;
  const char* const* versions; /* ends with NULL; NULL: all of the remote's */
  int lazy;      /* of a clone: packs stay at the remote; pages are fetched when they are read */
  int packs;     /* of a pull into a lazy clone: also fetches all of its packs */
  int take_over; /* of a pull: also replaces branches that lose commits by it */
  int dry_run;   /* of a pull: only reports what would be fetched; not with `packs` */
} vellum_pull_options;
#define VELLUM_PULL_OPTIONS_INIT {sizeof(vellum_pull_options), 0, 0, 0, 0, 0}

typedef struct vellum_pull_report {
  size_t struct_size;
  uint64_t pieces_read, bytes_read;
} vellum_pull_report;
#define VELLUM_PULL_REPORT_INIT {sizeof(vellum_pull_report), 0, 0}

/* Fetches versions from a remote. `options`, `report` and the callbacks may be NULL. */
int vellum_pull(vellum_store* store, const char* remote, const vellum_pull_options* options,
                vellum_pull_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                void* context);

/* Creates the store `directory`, which must not exist, from the remote at `url`. */
int vellum_clone(const char* url, const char* directory, const vellum_pull_options* options,
                 vellum_pull_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                 void* context);

/* ---- Versions of groups, read without their job: see group.hpp. Jobs: see mpi.h ---- */

typedef struct vellum_group_version vellum_group_version;

/* `records` is the directory of the group's records, or the URL of its remote, which suffices to
 * read the versions that are complete there. `version` is a name or a number; NULL: the newest.
 * `stores` is the current path of the stores ("{}" stands for the partition's number); NULL: the
 * path in the record. */
int vellum_group_version_open(const char* records, const char* version, const char* stores,
                              vellum_group_version** out);
/* The same, only for a URL. `options` may be NULL. */
int vellum_group_version_open_remote(const char* url, const char* version,
                                     const vellum_remote_options* options,
                                     vellum_group_version** out);
/* Its regions stay open. */
void vellum_group_version_close(vellum_group_version* version);

/* These cannot fail: 0 for NULL. */
uint64_t vellum_group_version_number(const vellum_group_version* version);
uint32_t vellum_group_version_partitions(const vellum_group_version* version);
/* To read. `options` may be NULL. VELLUM_ERR_INVALID_ARGUMENT: there is no such partition. */
int vellum_group_version_open_partition(const vellum_group_version* version, uint32_t partition,
                                        const vellum_region_options* options, vellum_region** out);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_VELLUM_H */

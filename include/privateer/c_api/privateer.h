/* privateer/c_api/privateer.h: the C interface of LLNL's Privateer over a Vellum store.
 * privateer/privateer.hpp describes each function, at the member function of the same name.
 *
 * ERRORS. After an error pointers are NULL, flags 0, sizes UINT64_MAX (privateer_region_size: 0).
 * privateer_last_error() is not part of the original: it describes the error of the calling
 * thread's last call, and is "" when the call succeeded.
 */
#ifndef PRIVATEER_C_API_PRIVATEER_H
#define PRIVATEER_C_API_PRIVATEER_H

#include <stdint.h>

static const int CREATE = 0;
static const int OPEN = 1;

#ifdef __cplusplus
extern "C" {
#endif

void* get_privateer_object(int action, const char* base_path);
/* Ends with the effect of privateer_msync(). NULL: nothing to do. */
void delete_privateer_object(void* privateer_instance);

void* privateer_create(void* privateer_instance, void* addr, const char* version_metadata_path,
                       uint64_t size, int allow_overwrite);
void* privateer_open(void* privateer_instance, void* addr, const char* version_metadata_path);
void* privateer_open_read_only(void* privateer_instance, void* addr,
                               const char* version_metadata_path);
void* privateer_open_immutable(void* privateer_instance, void* addr,
                               const char* version_metadata_path,
                               const char* new_version_metadata_path);

void privateer_msync(void* privateer_instance);
/* 1; 0 when that version exists (then privateer_last_error() is "") or it failed. */
int privateer_snapshot(void* privateer_instance, const char* version_metadata_path);

void* privateer_data(void* privateer_instance);
uint64_t privateer_region_size(void* privateer_instance);
int privateer_version_exists(const char* version_metadata_path, void* privateer_instance);
/* By the full path; the instance is not used. */
uint64_t privateer_version_capacity(void* privateer_instance, const char* version_path);
uint64_t version_block_size(const char* version_path);

int get_privateer_action_create(void);
int get_privateer_action_open(void);

const char* privateer_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PRIVATEER_C_API_PRIVATEER_H */

// aio_read(3) and similar functions: the C library's threads would bypass this library. A job on a
// live file is executed at once, and is complete when the call returns. aio_error(3), aio_return(3)
// and aio_suspend(3) find that in the job itself.
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "base/error_number.hpp"
#include "run/files/files.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

bool is_live(const aiocb* job) {
  return !ReentrancyGuard::is() && job != nullptr &&
         Files::instance().live(job->aio_fildes) != nullptr;
}

void* call_notified(void* given) {
  const std::unique_ptr<sigevent> event(static_cast<sigevent*>(given));
  event->sigev_notify_function(event->sigev_value);
  return nullptr;
}

void start_thread(const sigevent& event) {
  auto* const copy = new (std::nothrow) sigevent(event);
  pthread_t thread;
  const auto* const attributes = static_cast<const pthread_attr_t*>(event.sigev_notify_attributes);
  if (copy == nullptr || pthread_create(&thread, attributes, call_notified, copy) != 0) {
    delete copy;
  } else {
    pthread_detach(thread);
  }
}

void notify(const sigevent& event) {
  if (event.sigev_notify == SIGEV_THREAD) return start_thread(event);
  if (event.sigev_notify != SIGEV_SIGNAL) return;
  siginfo_t info{};
  info.si_code = SI_ASYNCIO;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value = event.sigev_value;
  syscall(SYS_rt_sigqueueinfo, info.si_pid, event.sigev_signo, &info);
}

int complete(aiocb* job, ssize_t done) {
  job->__error_code = done < 0 ? errno : 0;
  job->__return_value = done;
  notify(job->aio_sigevent);
  return 0;
}

int read_job(aiocb* job) {
  return complete(job, pread(job->aio_fildes, const_cast<void*>(job->aio_buf), job->aio_nbytes,
                             job->aio_offset));
}
int write_job(aiocb* job) {
  return complete(job, pwrite(job->aio_fildes, const_cast<const void*>(job->aio_buf),
                              job->aio_nbytes, job->aio_offset));
}
int sync_job(int how, aiocb* job) {
  if (how != O_SYNC && how != O_DSYNC) return base::as_result(EINVAL);
  return complete(job, fsync(job->aio_fildes));
}

// Jobs on other files are passed to the C library, which skips null entries of its list.
int run_list(int mode, aiocb* const list[], int count, sigevent* event,
             int (*real)(int, aiocb* const[], int, sigevent*)) {
  Files& files = Files::instance();
  bool any = false;
  for (int i = 0; files.active() && i < count; ++i) any = any || is_live(list[i]);
  if (!any) return real(mode, list, count, event);
  std::vector<aiocb*> others;
  bool failed = false;
  for (int i = 0; i < count; ++i) {
    others.push_back(is_live(list[i]) ? nullptr : list[i]);
    if (others.back() != nullptr || list[i] == nullptr) continue;
    if (list[i]->aio_lio_opcode == LIO_READ) read_job(list[i]);
    if (list[i]->aio_lio_opcode == LIO_WRITE) write_job(list[i]);
    failed = failed || (list[i]->aio_lio_opcode != LIO_NOP && list[i]->__error_code != 0);
  }
  const int result = real(mode, others.data(), count, event);
  return result == 0 && failed && mode == LIO_WAIT ? base::as_result(EIO) : result;
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::is_live;

VELLUM_PRELOAD int aio_read(aiocb* job) noexcept {
  return is_live(job) ? vellum::preload::read_job(job) : VELLUM_REAL(aio_read)(job);
}
VELLUM_PRELOAD int aio_write(aiocb* job) noexcept {
  return is_live(job) ? vellum::preload::write_job(job) : VELLUM_REAL(aio_write)(job);
}
VELLUM_PRELOAD int aio_fsync(int how, aiocb* job) noexcept {
  return is_live(job) ? vellum::preload::sync_job(how, job) : VELLUM_REAL(aio_fsync)(how, job);
}
VELLUM_PRELOAD int lio_listio(int mode, aiocb* const list[], int count, sigevent* event) noexcept {
  return vellum::preload::run_list(mode, list, count, event, VELLUM_REAL(lio_listio));
}

// The same structure under another name: offsets have 64 bits anyway.
VELLUM_PRELOAD int aio_read64(aiocb64* job) noexcept {
  return aio_read(reinterpret_cast<aiocb*>(job));
}
VELLUM_PRELOAD int aio_write64(aiocb64* job) noexcept {
  return aio_write(reinterpret_cast<aiocb*>(job));
}
VELLUM_PRELOAD int aio_fsync64(int how, aiocb64* job) noexcept {
  return aio_fsync(how, reinterpret_cast<aiocb*>(job));
}
VELLUM_PRELOAD int lio_listio64(int mode, aiocb64* const list[], int count,
                                sigevent* event) noexcept {
  return lio_listio(mode, reinterpret_cast<aiocb* const*>(list), count, event);
}

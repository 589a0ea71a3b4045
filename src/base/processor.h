/* base/processor.h: for which processor this is compiled. With VELLUM_PORTABLE, as for one that no
 * file names: the preset `portable` tries those branches where the tests run. */
#ifndef VELLUM_BASE_PROCESSOR_H
#define VELLUM_BASE_PROCESSOR_H

#if defined(VELLUM_PORTABLE)
#elif defined(__x86_64__)
#define VELLUM_X86_64 1
#elif defined(__aarch64__)
#define VELLUM_ARM64 1
#endif

#endif /* VELLUM_BASE_PROCESSOR_H */

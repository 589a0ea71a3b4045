/* base/processor.h: the processor that this is compiled for. VELLUM_PORTABLE selects the branches for
 * unknown processors: the preset `portable` tests them. */
#ifndef VELLUM_BASE_PROCESSOR_H
#define VELLUM_BASE_PROCESSOR_H

#if defined(VELLUM_PORTABLE)
#elif defined(__x86_64__)
#define VELLUM_X86_64 1
#elif defined(__aarch64__)
#define VELLUM_ARM64 1
#endif

#endif /* VELLUM_BASE_PROCESSOR_H */

/* vellum/version.h: the version of these headers, for C and C++. vellum_version() (vellum/vellum.h)
 * and vellum::version() (vellum/version.hpp) return that of the library, which may be another one
 * at run time. */
#ifndef VELLUM_VERSION_H
#define VELLUM_VERSION_H

#define VELLUM_VERSION_MAJOR 0
#define VELLUM_VERSION_MINOR 1
#define VELLUM_VERSION_PATCH 0
#define VELLUM_VERSION_STRING "0.1.0"

#endif /* VELLUM_VERSION_H */

#include "support/sanitizer_options.hpp"

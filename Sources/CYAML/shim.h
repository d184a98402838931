// The headers of libyaml, as Debian's -dev package installs them.
#pragma once
#include <yaml.h>

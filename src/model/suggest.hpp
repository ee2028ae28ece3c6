// "Did you mean": help for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

// "did you mean 'fa2'?" where a known name is near enough, else "known: naive, fa2".
std::string suggest(std::string_view name, const std::vector<std::string>& known);

}  // namespace rooflash

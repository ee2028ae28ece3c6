# Writes OUTPUT with the version, commit and state of the working tree; untouched when unchanged.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
                OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(COMMIT)
  set(commit ${COMMIT})
endif()
if(NOT commit)
  set(commit unknown)
endif()
set(dirty false)
if(changes)
  set(dirty true)
endif()
set(text "#include \"core/build_info.hpp\"

namespace rooflash {

const BuildInfo& build_info() {
  static const BuildInfo info{\"${VERSION}\", \"${commit}\", ${dirty}, \"${BUILD}\"};
  return info;
}

}  // namespace rooflash
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()

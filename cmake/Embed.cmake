# Embeds data files into the binary, so that it runs from anywhere: `embedded("suites/smoke.json")`.
# Also writes the build information (version, commit, dirty) anew in each build.

file(GLOB ROOFLASH_EMBED_FILES CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
     ${CMAKE_SOURCE_DIR}/suites/*.json ${CMAKE_SOURCE_DIR}/reports/js/*.js
     ${CMAKE_SOURCE_DIR}/reports/*.css ${CMAKE_SOURCE_DIR}/reports/*.html)
set(ROOFLASH_EMBEDDED ${CMAKE_BINARY_DIR}/generated/embedded.cpp)
set(embed_inputs ${ROOFLASH_EMBED_FILES})
list(TRANSFORM embed_inputs PREPEND ${CMAKE_SOURCE_DIR}/)
add_custom_command(
  OUTPUT ${ROOFLASH_EMBEDDED}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${ROOFLASH_EMBEDDED} -DSOURCE=${CMAKE_SOURCE_DIR}
          "-DFILES=${ROOFLASH_EMBED_FILES}" -DD3=${D3_JS} -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${embed_inputs} ${D3_JS} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
  VERBATIM)

set(ROOFLASH_BUILD_INFO ${CMAKE_BINARY_DIR}/generated/build_info.cpp)
string(JOIN "," arch_text ${ROOFLASH_ARCHITECTURES})
if(ROOFLASH_CUDA)
  set(build_text "${CMAKE_BUILD_TYPE} gcc ${CMAKE_CXX_COMPILER_VERSION} nvcc ${CMAKE_CUDA_COMPILER_VERSION} sm ${arch_text}")
else()
  set(build_text "${CMAKE_BUILD_TYPE} gcc ${CMAKE_CXX_COMPILER_VERSION} host-only")
endif()
add_custom_target(
  build_info
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${ROOFLASH_BUILD_INFO} -DSOURCE=${CMAKE_SOURCE_DIR}
          -DVERSION=${PROJECT_VERSION} -DCOMMIT=${ROOFLASH_COMMIT} "-DBUILD=${build_text}" -P ${CMAKE_SOURCE_DIR}/cmake/build_info.cmake
  BYPRODUCTS ${ROOFLASH_BUILD_INFO}
  VERBATIM)

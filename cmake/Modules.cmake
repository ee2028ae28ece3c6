# One static library per folder of src/, and the two executables.

# -Wrestrict is off: GCC 12 gives false alarms on std::string's operator+ (GCC bug 105651).
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Werror>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror -Werror=all-warnings>)
if(ROOFLASH_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      # GCC documents false alarms of this warning under its sanitizers.
                      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
endif()
if(ROOFLASH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR ROOFLASH_CUDA)
    message(FATAL_ERROR "ROOFLASH_FUZZ needs -DCMAKE_CXX_COMPILER=clang++ -DROOFLASH_CUDA=OFF")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# rooflash_module(NAME glob... DEPENDS libraries...): static library rooflash_NAME. A folder with no
# sources yet gives an interface library.
function(rooflash_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;GENERATED" ${ARGN})
  set(sources ${ARG_GENERATED})
  foreach(pattern IN LISTS ARG_SOURCES)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
    list(APPEND sources ${found})
  endforeach()
  if(sources)
    add_library(rooflash_${name} STATIC ${sources})
    target_include_directories(rooflash_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/kernels)
    target_link_libraries(rooflash_${name} PRIVATE warnings PUBLIC ${ARG_DEPENDS})
  else()
    add_library(rooflash_${name} INTERFACE)
    target_link_libraries(rooflash_${name} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

rooflash_module(core SOURCES src/core/*.cpp GENERATED ${ROOFLASH_EMBEDDED} ${ROOFLASH_BUILD_INFO} DEPENDS fmt)
add_dependencies(rooflash_core build_info)
rooflash_module(kernels SOURCES kernels/kernel.cpp kernels/common/*.cpp kernels/common/hopper/*.cpp
                        kernels/*/host.cpp kernels/cudnn/library.cpp
                DEPENDS rooflash_core ${CMAKE_DL_LIBS})
if(ROOFLASH_WITH_CUDNN)
  target_compile_definitions(rooflash_kernels PRIVATE ROOFLASH_CUDNN)
endif()
rooflash_module(registry SOURCES kernels/registry.cpp DEPENDS rooflash_kernels)
rooflash_module(record SOURCES src/record/*.cpp DEPENDS rooflash_core json)
rooflash_module(model SOURCES src/model/*.cpp DEPENDS rooflash_kernels json)
rooflash_module(verify SOURCES src/verify/*.cpp DEPENDS rooflash_core)
rooflash_module(statistics SOURCES src/measure/statistics.cpp DEPENDS rooflash_core)
rooflash_module(metrics SOURCES src/measure/metrics.cpp DEPENDS rooflash_core)
rooflash_module(profile SOURCES src/profile/*.cpp DEPENDS rooflash_metrics rooflash_record json)
rooflash_module(sweep SOURCES src/sweep/*.cpp DEPENDS rooflash_registry rooflash_model rooflash_record)
rooflash_module(report SOURCES src/report/*.cpp DEPENDS rooflash_record ZLIB::ZLIB)
rooflash_module(gate SOURCES src/gate/*.cpp DEPENDS rooflash_record rooflash_statistics)
rooflash_module(history SOURCES src/history/*.cpp DEPENDS rooflash_gate)
rooflash_module(export SOURCES src/export/*.cpp DEPENDS rooflash_report rooflash_history)
rooflash_module(doctor SOURCES src/worker/doctor/*.cpp DEPENDS rooflash_core)
rooflash_module(worker_driver SOURCES src/worker/*.cpp src/worker/driver/*.cpp
                DEPENDS rooflash_sweep rooflash_model rooflash_profile rooflash_record rooflash_doctor
                        Threads::Threads)
rooflash_module(cli SOURCES src/cli/*.cpp DEPENDS rooflash_sweep rooflash_export rooflash_profile
                rooflash_worker_driver cli11)
# Needs a registry beside it: rooflash_registry, or rooflash_cuda with the kernels bound.
rooflash_module(worker_loop SOURCES src/worker/*.cpp src/worker/loop/*.cpp src/sweep/repro.cpp
                DEPENDS rooflash_model rooflash_profile rooflash_verify rooflash_record rooflash_statistics
                        rooflash_kernels rooflash_doctor Threads::Threads)

if(EXISTS ${CMAKE_SOURCE_DIR}/src/main.cpp)
  add_executable(rooflash src/main.cpp)
  target_link_libraries(rooflash PRIVATE warnings rooflash_cli)
endif()

if(EXISTS ${CMAKE_SOURCE_DIR}/src/worker/main/worker_main.cpp)
  add_executable(rooflash-worker src/worker/main/worker_main.cpp)
  target_link_libraries(rooflash-worker PRIVATE warnings rooflash_worker_loop)
  if(ROOFLASH_CUDA)
    target_link_libraries(rooflash-worker PRIVATE rooflash_cuda)
    target_compile_definitions(rooflash-worker PRIVATE ROOFLASH_WITH_CUDA)
  else()
    target_link_libraries(rooflash-worker PRIVATE rooflash_registry)
  endif()
endif()

# The parts of gpu/ and measure/ that use NVML and CUPTI alone, which they open at run time. They are
# tested on fakes of both on any machine; CUPTI's headers are needed to build the second.
rooflash_module(nvml SOURCES src/gpu/library.cpp src/gpu/nvml.cpp src/gpu/nvml_api.cpp
                DEPENDS rooflash_core Threads::Threads ${CMAKE_DL_LIBS})
if(CUPTI_INCLUDE)
  rooflash_module(measure SOURCES src/measure/counters.cpp src/measure/counter_failure.cpp
                          src/measure/cupti_api.cpp src/measure/metric_check.cpp src/measure/metric_plan.cpp
                  DEPENDS rooflash_profile rooflash_model rooflash_nvml)
  target_include_directories(rooflash_measure SYSTEM PUBLIC ${CUPTI_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
endif()

if(ROOFLASH_CUDA)
  # Everything that needs CUDA, and the registry with the kernels' prepare functions bound.
  file(GLOB cuda_sources CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/kernels/*/*.cu ${CMAKE_SOURCE_DIR}/kernels/common/hopper/*.cu
       ${CMAKE_SOURCE_DIR}/src/gpu/*.cpp ${CMAKE_SOURCE_DIR}/src/gpu/*.cu
       ${CMAKE_SOURCE_DIR}/src/measure/*.cpp ${CMAKE_SOURCE_DIR}/src/measure/*.cu
       ${CMAKE_SOURCE_DIR}/src/verify/*.cu ${CMAKE_SOURCE_DIR}/src/worker/cuda/*.cpp)
  foreach(module nvml measure metrics statistics)
    get_target_property(host_sources rooflash_${module} SOURCES)
    list(REMOVE_ITEM cuda_sources ${host_sources})
  endforeach()
  if(ROOFLASH_WITH_CUDNN)
    rooflash_module(cudnn SOURCES kernels/cudnn/cudnn.cpp DEPENDS rooflash_kernels CUDA::cudart_static)
    target_compile_definitions(rooflash_cudnn PRIVATE NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
                                                      CUDNN_FRONTEND_SKIP_JSON_LIB)
    target_compile_options(rooflash_cudnn PRIVATE -O1)  # three times as fast as -O3, and runs nothing hot
    target_include_directories(rooflash_cudnn SYSTEM PRIVATE ${CUDNN_FRONTEND_INCLUDE} ${CUDNN_INCLUDE})
    set(cudnn_sources "")
  else()
    set(cudnn_sources ${CMAKE_SOURCE_DIR}/kernels/cudnn/not_built.cpp)
  endif()
  add_library(rooflash_cuda STATIC ${CMAKE_SOURCE_DIR}/kernels/registry.cpp ${cudnn_sources} ${cuda_sources})
  target_include_directories(rooflash_cuda PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/kernels)
  target_compile_definitions(rooflash_cuda PRIVATE ROOFLASH_WITH_CUDA $<$<BOOL:${ROOFLASH_SLOWDOWN}>:ROOFLASH_SLOWDOWN>
                                                   $<$<IN_LIST:90a,${ROOFLASH_ARCHITECTURES}>:ROOFLASH_SM90A>)
  target_compile_options(rooflash_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
    -lineinfo --expt-relaxed-constexpr --no-compress -Xptxas=-v,--warn-on-spills>)
  target_link_libraries(rooflash_cuda PRIVATE warnings PUBLIC
    rooflash_worker_loop rooflash_kernels $<TARGET_NAME_IF_EXISTS:rooflash_cudnn> rooflash_verify rooflash_measure rooflash_statistics json
    CUDA::cudart_static CUDA::cublas CUDA::cublasLt ${CMAKE_DL_LIBS})
endif()

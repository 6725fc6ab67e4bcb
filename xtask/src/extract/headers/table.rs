//! The APIs that C headers describe: which headers of which packages.

/// An API that is read from C headers.
pub struct HeaderApi {
    /// Its short name.
    pub name: &'static str,
    /// Its headers, as programs include them; not every version has all.
    pub headers: &'static [&'static str],
    /// Headers of ours that are read with them.
    pub own: &'static [&'static str],
    /// Macros that are set, one list per reading. What the first one finds is
    /// preferred.
    pub modes: &'static [&'static [&'static str]],
    /// Beginnings of the names of its functions.
    pub prefixes: &'static [&'static str],
    /// Beginnings of names that the prefixes take and that are not its own.
    pub except: &'static [&'static str],
    /// Whether names end in `_v2`, `_ptds` and the like, which lookups leave out.
    pub versioned_names: bool,
    /// Versions, oldest first; none if the header is ours and lies beside the
    /// model.
    pub packages: &'static [Package],
    /// Integer types whose values are addresses or objects.
    pub addresses: &'static [&'static str],
    /// Macros that are values of a parameter.
    pub constants: &'static [Constants],
    /// Enumerations that are sets of bits, where it does not show.
    pub bits: &'static [&'static str],
    /// Enumerations that look like sets of bits and are not.
    pub not_bits: &'static [&'static str],
}

/// One version, as a package of PyPI.
pub struct Package {
    /// The version as the model has it.
    pub label: &'static str,
    /// The package.
    pub name: &'static str,
    /// The package's version.
    pub version: &'static str,
}

/// Macros whose values belong together.
pub struct Constants {
    /// The name that their group gets.
    pub group: &'static str,
    /// Whether they are combined with `|`.
    pub bits: bool,
    /// Their names; a `*` at the end stands for any end.
    pub names: &'static [&'static str],
    /// Names that the patterns take by mistake.
    pub except: &'static [&'static str],
}

impl HeaderApi {
    /// Whether a function of this name belongs to the API.
    pub fn is_function(&self, name: &str) -> bool {
        let starts = |with: &[&str]| with.iter().any(|p| name.starts_with(p));
        starts(self.prefixes) && !starts(self.except)
    }
}

/// All of them.
pub const ALL: &[HeaderApi] = &[CUDA, CUDART, NCCL, NVTX];

const fn package(label: &'static str, name: &'static str, version: &'static str) -> Package {
    Package { label, name, version }
}

const fn flags(group: &'static str, names: &'static [&'static str]) -> Constants {
    Constants { group, bits: true, names, except: &[] }
}

const fn numbers(group: &'static str, names: &'static [&'static str]) -> Constants {
    Constants { group, bits: false, names, except: &[] }
}

const CU12: &str = "nvidia-cuda-runtime-cu12";
const CU13: &str = "nvidia-cuda-runtime";

/// The driver's and the runtime's headers come together.
const CUDA_PACKAGES: &[Package] = &[
    package("12.0", CU12, "12.0.146"),
    package("12.1", CU12, "12.1.105"),
    package("12.2", CU12, "12.2.140"),
    package("12.3", CU12, "12.3.101"),
    package("12.4", CU12, "12.4.127"),
    package("12.5", CU12, "12.5.82"),
    package("12.6", CU12, "12.6.77"),
    package("12.8", CU12, "12.8.90"),
    package("12.9", CU12, "12.9.79"),
    package("13.0", CU13, "13.0.96"),
    package("13.1", CU13, "13.1.80"),
    package("13.2", CU13, "13.2.86"),
    package("13.3", CU13, "13.3.29"),
    package("13.4", CU13, "13.4.92"),
    package("13.5", CU13, "13.5.37"),
];

/// As programs see the headers; with a stream per thread; with all that older
/// programs were built against.
const CUDA_MODES: &[&[&str]] =
    &[&[], &["CUDA_API_PER_THREAD_DEFAULT_STREAM"], &["__CUDA_API_VERSION_INTERNAL"]];

/// The same for the runtime; what only nvcc can read is taken as read.
const CUDART_MODES: &[&[&str]] = &[
    &["__CUDA_RUNTIME_H__"],
    &["__CUDA_RUNTIME_H__", "CUDA_API_PER_THREAD_DEFAULT_STREAM"],
    &["__CUDA_RUNTIME_H__", "__CUDA_API_VERSION_INTERNAL"],
];

/// The driver API.
const CUDA: HeaderApi = HeaderApi {
    name: "cuda",
    headers: &[
        "cuda.h",
        "cudaGL.h",
        "cudaEGL.h",
        "cudaVDPAU.h",
        "cudaTypedefs.h",
        "cudaGLTypedefs.h",
        "cudaEGLTypedefs.h",
        "cudaVDPAUTypedefs.h",
        "cudaProfilerTypedefs.h",
    ],
    own: &["hetrace_cuda.h"],
    modes: CUDA_MODES,
    prefixes: &["cu"],
    except: &["cuda"],
    versioned_names: true,
    packages: CUDA_PACKAGES,
    addresses: &[
        "CUdeviceptr",
        "CUdeviceptr_v1",
        "CUdeviceptr_v2",
        "CUtexObject",
        "CUtexObject_v1",
        "CUsurfObject",
        "CUsurfObject_v1",
        "CUmemGenericAllocationHandle",
        "CUmemGenericAllocationHandle_v1",
        "CUgraphConditionalHandle",
    ],
    constants: &[
        flags("cuMemHostAlloc_flags", &["CU_MEMHOSTALLOC_*"]),
        flags("cuMemHostRegister_flags", &["CU_MEMHOSTREGISTER_*"]),
        flags("cuArray3D_flags", &["CUDA_ARRAY3D_*"]),
        flags("cuArraySparse_flags", &["CU_ARRAY_SPARSE_PROPERTIES_*"]),
        flags("cuTexRef_flags", &["CU_TRSF_*"]),
        flags("cuTexRefSetArray_flags", &["CU_TRSA_*"]),
        flags("cuExternalMemory_flags", &["CUDA_EXTERNAL_MEMORY_*"]),
        flags("cuExternalSemaphore_flags", &["CUDA_EXTERNAL_SEMAPHORE_*"]),
        flags("cuNvSciSync_flags", &["CUDA_NVSCISYNC_ATTR_*"]),
        flags("cuMemCreate_usage", &["CU_MEM_CREATE_USAGE_*"]),
        flags("cuMemPoolCreate_usage", &["CU_MEM_POOL_CREATE_USAGE_*"]),
        flags("cuLaunchCooperativeKernelMultiDevice_flags", &["CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_*"]),
        flags("cuGraphConditional_flags", &["CU_GRAPH_COND_*"]),
        numbers("cuGraphKernelNodePort", &["CU_GRAPH_KERNEL_NODE_PORT_*"]),
        numbers("cuStream_special", &["CU_STREAM_LEGACY", "CU_STREAM_PER_THREAD"]),
        numbers("cuDevice_special", &["CU_DEVICE_CPU", "CU_DEVICE_INVALID"]),
        numbers(
            "cuLaunchKernel_extra",
            &["CU_LAUNCH_PARAM_END", "CU_LAUNCH_PARAM_BUFFER_POINTER", "CU_LAUNCH_PARAM_BUFFER_SIZE"],
        ),
    ],
    bits: &["CUflushGPUDirectRDMAWritesOptions"],
    not_bits: &[
        "CUstreamBatchMemOpType",
        "CUmemAllocationGranularity_flags",
        "CUmulticastGranularity_flags",
        "CUmemAccess_flags",
        "CUeglResourceLocationFlags",
    ],
};

/// The runtime API.
const CUDART: HeaderApi = HeaderApi {
    name: "cudart",
    headers: &[
        "cuda_runtime_api.h",
        "cuda_gl_interop.h",
        "cuda_egl_interop.h",
        "cuda_vdpau_interop.h",
        "library_types.h",
    ],
    own: &["hetrace_cudart.h"],
    modes: CUDART_MODES,
    prefixes: &["cuda", "__cuda"],
    except: &["__cudaCDP"],
    versioned_names: true,
    packages: CUDA_PACKAGES,
    addresses: &["cudaTextureObject_t", "cudaSurfaceObject_t", "cudaGraphConditionalHandle"],
    constants: &[
        flags("cudaHostAlloc_flags", &["cudaHostAlloc*"]),
        flags("cudaHostRegister_flags", &["cudaHostRegister*"]),
        flags("cudaDeviceEnablePeerAccess_flags", &["cudaPeerAccess*"]),
        flags("cudaStreamCreate_flags", &["cudaStreamDefault", "cudaStreamNonBlocking"]),
        numbers("cudaStream_special", &["cudaStreamLegacy", "cudaStreamPerThread"]),
        flags(
            "cudaEventCreate_flags",
            &["cudaEventDefault", "cudaEventBlockingSync", "cudaEventDisableTiming", "cudaEventInterprocess"],
        ),
        flags("cudaEventRecord_flags", &["cudaEventRecord*"]),
        flags("cudaEventWait_flags", &["cudaEventWait*"]),
        Constants {
            group: "cudaSetDeviceFlags_flags",
            bits: true,
            names: &[
                "cudaDeviceSchedule*",
                "cudaDeviceBlockingSync",
                "cudaDeviceMapHost",
                "cudaDeviceLmemResizeToMax",
                "cudaDeviceSyncMemops",
            ],
            except: &["cudaDeviceScheduleMask"],
        },
        Constants {
            group: "cudaMallocArray_flags",
            bits: true,
            names: &["cudaArray*"],
            except: &["cudaArraySparsePropertiesSingleMipTail"],
        },
        flags("cudaArraySparse_flags", &["cudaArraySparseProperties*"]),
        flags("cudaIpcMem_flags", &["cudaIpcMemLazyEnablePeerAccess"]),
        flags("cudaMemAttach_flags", &["cudaMemAttach*"]),
        flags("cudaOccupancy_flags", &["cudaOccupancy*"]),
        numbers("cudaDevice_special", &["cudaCpuDeviceId", "cudaInvalidDeviceId"]),
        flags("cudaInitDevice_flags", &["cudaInitDeviceFlagsAreValid"]),
        flags("cudaMemPoolCreate_usage", &["cudaMemPoolCreateUsage*"]),
        flags("cudaLaunchCooperativeKernelMultiDevice_flags", &["cudaCooperativeLaunchMultiDevice*"]),
        flags("cudaExternalMemory_flags", &["cudaExternalMemoryDedicated"]),
        flags(
            "cudaExternalSemaphore_flags",
            &["cudaExternalSemaphoreSignalSkip*", "cudaExternalSemaphoreWaitSkip*"],
        ),
        flags("cudaNvSciSync_flags", &["cudaNvSciSyncAttr*"]),
        flags("cudaGraphConditional_flags", &["cudaGraphCondAssign*"]),
        numbers("cudaGraphKernelNodePort", &["cudaGraphKernelNodePort*"]),
    ],
    bits: &["cudaFlushGPUDirectRDMAWritesOptions"],
    not_bits: &["cudaMemAccessFlags", "cudaEglResourceLocationFlags"],
};

const NCCL12: &str = "nvidia-nccl-cu12";
const NCCL13: &str = "nvidia-nccl-cu13";

/// The collective communications library.
const NCCL: HeaderApi = HeaderApi {
    name: "nccl",
    headers: &["nccl.h", "nccl_device/core.h", "nccl_device/host.h"],
    own: &["hetrace_nccl.h"],
    modes: &[&[]],
    prefixes: &["nccl", "pnccl"],
    except: &[],
    versioned_names: false,
    packages: &[
        package("2.18", NCCL12, "2.18.3"),
        package("2.19", NCCL12, "2.19.3"),
        package("2.20", NCCL12, "2.20.5"),
        package("2.21", NCCL12, "2.21.5"),
        package("2.22", NCCL12, "2.22.3"),
        package("2.23", NCCL12, "2.23.4"),
        package("2.24", NCCL12, "2.24.3"),
        package("2.25", NCCL12, "2.25.1"),
        package("2.26", NCCL12, "2.26.5"),
        package("2.27", NCCL12, "2.27.7"),
        package("2.28", NCCL13, "2.28.9"),
        package("2.29", NCCL13, "2.29.7"),
        package("2.30", NCCL13, "2.30.7"),
        package("2.31", NCCL13, "2.31.2"),
        package("2.32", NCCL13, "2.32.3"),
    ],
    addresses: &[],
    constants: &[
        Constants {
            group: "ncclWindow_flags",
            bits: true,
            names: &["NCCL_WIN_*"],
            except: &["NCCL_WIN_REQUIRED_ALIGNMENT"],
        },
        numbers("ncclCommSplit_special", &["NCCL_SPLIT_NOCOLOR"]),
        flags("ncclCommShrink_flags", &["NCCL_SHRINK_*"]),
        flags("ncclCommRevoke_flags", &["NCCL_REVOKE_*"]),
        flags("ncclCommSuspend_flags", &["NCCL_SUSPEND_*"]),
        flags("ncclCta_policy", &["NCCL_CTA_POLICY_*"]),
        numbers("ncclConfig_special", &["NCCL_CONFIG_UNDEF_INT"]),
    ],
    bits: &[],
    not_bits: &[],
};

/// The annotation library. Its own headers hold structs with unions in them and
/// each function twice; ours lays that flat.
const NVTX: HeaderApi = HeaderApi {
    name: "nvtx",
    headers: &["nvtx.h"],
    own: &[],
    modes: &[&[]],
    prefixes: &["nvtx"],
    except: &[],
    versioned_names: false,
    packages: &[],
    addresses: &["nvtxColor_t", "nvtxIdentifier_t"],
    constants: &[],
    bits: &[],
    not_bits: &[],
};

/* Teams that there always are; the library's own enumeration goes on with what are no teams. */
#pragma once
#define NVSHMEM_TEAM_INVALID NVSHMEM_TEAM_INVALID
#define NVSHMEM_TEAM_WORLD NVSHMEM_TEAM_WORLD
#define NVSHMEM_TEAM_SHARED NVSHMEM_TEAM_SHARED
#define NVSHMEMX_TEAM_NODE NVSHMEMX_TEAM_NODE
#define NVSHMEMX_TEAM_SAME_MYPE_NODE NVSHMEMX_TEAM_SAME_MYPE_NODE

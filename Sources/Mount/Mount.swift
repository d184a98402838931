// Mount shows the snapshots of a repository as a read-only file system (docs/mount.md).
//
// `SnapshotFileSystem` has the operations without the kernel: nodes are found by name from the
// trees of a snapshot, and files are read from decoded frames. `FuseSession` answers the kernel's
// requests with them, on its own threads, through libfuse's low-level interface.
//
// A node is named by a number that depends on its snapshot and path alone. Nothing is read before
// it is needed: a directory when it is opened or its links are counted, a frame when a file in it
// is read. Memory is bounded: 64 MiB of decoded frames, 32 MiB of decoded directories, 8 MiB of
// lists of pieces, and about 150 bytes for each node that the kernel knows.
//
// Not guaranteed: that a snapshot stays readable after it is removed from the repository, if the
// repository cannot be written to and so there is no lease.

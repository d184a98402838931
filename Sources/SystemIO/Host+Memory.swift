internal import CLinux

extension Host {
  /// Returns freed blocks of 1 MiB or more to the system.
  ///
  /// By default glibc does so only until the first such block is freed. From then on it keeps ever
  /// larger blocks in its heaps, which fragment: at the end of a backup half of the memory was
  /// holes. Applies to the whole process, so call it at the start.
  package static func returnLargeBlocks() {
    cl_map_blocks_from(1 << 20)
  }
}

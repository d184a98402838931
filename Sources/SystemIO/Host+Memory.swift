internal import CLinux

extension Host {
  /// Has the memory of each block of 1 MiB or more given back to the system when it is freed.
  ///
  /// By default glibc does so only until the first such block is freed; then it keeps ever larger ones
  /// in its heaps, where what threads make and free in turn leaves holes: at the end of a backup half
  /// of the memory was holes. The whole program's choice, so for its beginning.
  public static func returnLargeBlocks() {
    cl_map_blocks_from(1 << 20)
  }
}

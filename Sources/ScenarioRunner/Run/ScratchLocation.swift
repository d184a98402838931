internal import Scenario
internal import SystemIO

/// The choice of the directory in which the private directory of a run is created.
///
/// A case removes a thousand files at its end, most of them empty directories of its repository,
/// which takes longer than everything else on a disk. Copies of the sample device are small, so
/// they are made in memory if possible.
enum ScratchLocation {
  /// The file system in memory (Linux, Documentation/filesystems/tmpfs.rst).
  private static let memory: ByteString = "/dev/shm"
  private static let disk: ByteString = "/tmp"
  /// The memory that has to be available, in bytes.
  private static let wanted: UInt64 = 2 << 30

  /// The directories that `choose` returns.
  static let all = [memory, disk]

  /// Returns the directory for cases.
  static func choose(for cases: [ScenarioCase]) -> ByteString {
    let areSmall = cases.allSatisfy { one in
      if case .sample = one.document.device { true } else { false }
    }
    return areSmall && hasMemory ? memory : disk
  }

  /// Whether there is enough memory, in a file system with the attributes that marks need, which
  /// tmpfs has since Linux 6.6.
  private static var hasMemory: Bool {
    do throws(SystemError) {
      let directory = try Directory.open(path: memory)
      guard try directory.space().available >= wanted else { return false }
      let file = try directory.createUnnamed()
      try file.attributes.set("user.sandboxctl", to: [1])
      try file.close()
      return true
    } catch { return false }
  }
}

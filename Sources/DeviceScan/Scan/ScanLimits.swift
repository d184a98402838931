internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The maximum depth of a container's directories and the maximum length of their paths, so that a
/// snapshot can hold their entries (docs/repository-format.md, "What a reader refuses").
struct ScanLimits {
  private let depth: Int
  private let bytes: Int

  init(_ container: Container) {
    let prefix = container.logicalPrefix
    // The snapshot's root is one of the directories.
    depth = FormatLimit.depth - 1 - prefix.components.count
    // Leaves room for a slash and the longest name.
    bytes = FormatLimit.path - prefix.count - 2 - Int(UInt8.max)
  }

  /// Returns the reason why no snapshot can hold an entry, or a directory with all its entries; nil
  /// if one can.
  func fault(of entry: WalkBatch.Entry, in directory: borrowing WalkDirectory) -> String? {
    // Linux defines NAME_MAX as 255, but not all of its file systems observe it.
    if entry.nameRange.count > Int(UInt8.max) {
      return "no snapshot can hold it: its name has \(entry.nameRange.count) bytes, more than 255"
    }
    guard entry.status.kind == .directory else { return nil }
    if directory.depth >= depth {
      return "no snapshot can hold it: it is nested in more than \(depth) directories"
    }
    let count = directory.relativePath.count + 1 + entry.nameRange.count
    return count > bytes ? "no snapshot can hold it: its path has more than \(bytes) bytes" : nil
  }
}

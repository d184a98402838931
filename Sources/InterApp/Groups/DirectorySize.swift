package import SystemIO

/// The number of files below a directory and their size.
package struct DirectorySize: Sendable, Hashable {
  /// The number of entries that are not directories.
  package private(set) var files: UInt64 = 0
  /// The bytes that the volume uses for the files and directories; a hard-linked file counts once
  /// for each name.
  package private(set) var bytes: UInt64 = 0
  /// Whether a part could not be read, so that the totals are too low.
  package private(set) var isIncomplete = false

  /// The size of an empty set of entries.
  package init() {}

  /// Measures a directory. Links are not followed, and other file systems are not entered.
  package init(of path: ByteString) {
    do throws(SystemError) {
      let directory = try Directory.open(resolved: path)
      bytes = try directory.status().allocated
      var walk = Walk(directory)
      var visitor = Visitor(size: self)
      walk.run(&visitor, state: ())
      self = visitor.size
    } catch { isIncomplete = true }
  }

  private struct Visitor: WalkVisitor {
    var size: DirectorySize

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      for (index, entry) in batch.entries.enumerated() {
        size.bytes += entry.status.allocated
        if entry.status.kind != .directory {
          size.files += 1
        } else if !entry.status.isMountPoint {
          descent.enter(index, with: ())
        }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) { size.isIncomplete = true }
  }
}

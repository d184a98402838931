package import SystemIO

/// The contents of a directory that is considered for removal.
package struct PresentEntries {
  private let protected: Set<FileIdentity>
  package private(set) var totals = RestoreTotals()
  /// The reason to keep the directory; nil if it may be removed.
  package private(set) var protection: String?

  package init(protected: Set<FileIdentity>) { self.protected = protected }

  /// Counts an entry. Returns false if it must be kept.
  package mutating func note(_ status: FileStatus) -> Bool {
    totals.count(status.kind, size: status.kind == .file ? status.size : 0)
    if status.isMountPoint {
      protection = "another volume is mounted in it"
    } else if protected.contains(status.identity) {
      protection = "the repository in use is there"
    }
    return protection == nil
  }

  /// Counts all entries below a directory.
  package mutating func read(_ directory: consuming Directory) throws(SystemError) {
    let status = try directory.status()
    if status.isMountPoint || protected.contains(status.identity) {
      _ = note(status)
      return
    }
    var walk = Walk(directory)
    var visitor = Visitor(contents: self)
    walk.run(&visitor, state: ())
    self = visitor.contents
    if let failure = visitor.failure { throw failure }
  }

  private struct Visitor: WalkVisitor {
    var contents: PresentEntries
    var failure: SystemError?

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      for (index, entry) in batch.entries.enumerated() where contents.note(entry.status) {
        if entry.status.kind == .directory { descent.enter(index, with: ()) }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      failure = failure ?? problem.error
    }
  }
}

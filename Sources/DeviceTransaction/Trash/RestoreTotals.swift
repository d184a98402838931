internal import ArchiveStore
internal import DeviceScan
package import SystemIO

/// The number of entries of each kind, and the size of their files.
package struct RestoreTotals: Sendable, Hashable {
  package var files = 0
  package var directories = 0
  package var links = 0
  package var specials = 0
  /// The size of the files in bytes, including holes.
  package var bytes: UInt64 = 0

  /// Creates empty totals.
  package init() {}

  /// The total number of entries.
  package var entries: Int { files + directories + links + specials }

  package mutating func count(_ kind: FileKind, size: UInt64) {
    switch kind {
    case .file:
      files += 1
      bytes.addClamping(size)
    case .directory: directories += 1
    case .symlink: links += 1
    case .fifo, .socket, .characterDevice, .blockDevice: specials += 1
    }
  }

  package mutating func subtract(_ other: RestoreTotals) {
    files -= other.files
    directories -= other.directories
    links -= other.links
    specials -= other.specials
    bytes -= Swift.min(bytes, other.bytes)
  }

  /// Adds other totals to these.
  package mutating func add(_ other: RestoreTotals) {
    files += other.files
    directories += other.directories
    links += other.links
    specials += other.specials
    bytes.addClamping(other.bytes)
  }
}

/// The contents of a directory that is considered for removal.
package struct PresentEntries {
  private let protected: Set<FileIdentity>
  private let sparesRepositories: Bool
  package private(set) var totals = RestoreTotals()
  /// The reason to keep the directory; nil if it may be removed.
  package private(set) var protection: String?

  /// - Parameters:
  ///   - protected: the directories that are kept.
  ///   - sparesRepositories: whether every repository is kept.
  package init(protected: Set<FileIdentity>, sparesRepositories: Bool = false) {
    self.protected = protected
    self.sparesRepositories = sparesRepositories
  }

  /// Counts an entry. Returns false if it must be kept.
  package mutating func count(_ status: FileStatus) -> Bool {
    totals.count(status.kind, size: status.kind == .file ? status.size : 0)
    if status.isMountPoint {
      protection = "another volume is mounted in it"
    } else if protected.contains(status.identity) {
      protection = "the repository in use is there"
    }
    return protection == nil
  }

  /// Whether a directory that a walk reads is kept because it is a repository.
  private mutating func keepsRepository(
    _ directory: borrowing Directory, with batch: borrowing WalkBatch
  ) -> Bool {
    guard sparesRepositories, protection == nil,
      RepositoryDirectory.isOne(directory, with: batch)
    else { return false }
    protection = "another repository is there"
    return true
  }

  /// Counts all entries below a directory.
  package mutating func read(_ directory: consuming Directory) throws(SystemError) {
    let status = try directory.status()
    if status.isMountPoint || protected.contains(status.identity) {
      _ = count(status)
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
      if contents.keepsRepository(directory.directory, with: batch) { return }
      for (index, entry) in batch.entries.enumerated() where contents.count(entry.status) {
        if entry.status.kind == .directory { descent.enter(index, with: ()) }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      failure = failure ?? problem.error
    }
  }
}

internal import ArchiveStore
internal import DeviceScan
internal import SandboxModel
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
  private let sparesOwnData: Bool
  package private(set) var totals = RestoreTotals()
  /// The reason to keep the directory; nil if it may be removed.
  package private(set) var protection: String?

  /// - Parameters:
  ///   - protected: the directories that are kept.
  ///   - sparesOwnData: whether repositories and the control directories of devices are kept.
  package init(protected: Set<FileIdentity>, sparesOwnData: Bool = false) {
    self.protected = protected
    self.sparesOwnData = sparesOwnData
  }

  /// Counts an entry. Returns false if it must be kept.
  private mutating func count(_ status: FileStatus) -> Bool {
    totals.count(status.kind, size: status.kind == .file ? status.size : 0)
    if status.isMountPoint {
      protection = "another volume is mounted in it"
    } else if protected.contains(status.identity) {
      protection = "the repository in use is there"
    }
    return protection == nil
  }

  /// The remark on a directory that is kept because it has the control directory of a device, at
  /// any depth: its journal and its trash are not in the snapshot that deletes them.
  package static let ownDirectoryRemark =
    "files of this program are there, such as a device's journal and trash"

  /// Counts an entry by its name. Returns false if it must be kept.
  package mutating func count(_ status: FileStatus, named name: Span<UInt8>) -> Bool {
    if sparesOwnData, status.kind == .directory, OwnNames.isDirectory(name) {
      protection = protection ?? Self.ownDirectoryRemark
      return false
    }
    return count(status)
  }

  /// Whether a directory that a walk reads is kept because it is a repository.
  private mutating func keepsRepository(
    _ directory: borrowing Directory, with batch: borrowing WalkBatch
  ) -> Bool {
    guard sparesOwnData, protection == nil,
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
      let bytes = batch.bytes
      for (index, entry) in batch.entries.enumerated() {
        let name = bytes.span.extracting(entry.nameRange)
        if contents.count(entry.status, named: name), entry.status.kind == .directory {
          descent.enter(index, with: ())
        }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      failure = failure ?? problem.error
    }
  }
}

internal import Codecs
internal import SystemIO

extension RepositoryCheck {
  /// Reads each tree that snapshots need once, and checks its references against the index.
  struct TreeCheck {
    private let reader: RepositoryReader
    private let index: CheckedIndex
    private let request: RepositoryCheck
    private var reaches: [TreeReference: Reach] = [:]
    private(set) var entries = 0
    /// Whether everything checked so far can be restored.
    private(set) var isWhole = true
    /// Whether something is in no index but may be in a pack that this user may not read, and
    /// whether something cannot be checked because such a pack holds its tree or list.
    private(set) var hasUnindexed = false
    private(set) var hasRefused = false

    var trees: Int { reaches.count }

    /// The extent of a tree, independent of its location: its depth, itself included, and the
    /// length in bytes of the longest path below it.
    private struct Reach {
      var directories = 1
      var bytes = 0

      mutating func add(_ below: Reach, name: Int) {
        directories = max(directories, below.directories + 1)
        bytes = max(bytes, below.bytes == 0 ? name : name + 1 + below.bytes)
      }
    }

    /// A tree whose subdirectories are being checked.
    private struct Open {
      let tree: TreeReference
      var below: [(tree: TreeReference, name: Int)] = []
      var reach = Reach()
    }

    init(_ reader: RepositoryReader, index: CheckedIndex, for check: RepositoryCheck) {
      self.reader = reader
      self.index = index
      request = check
    }

    /// Checks a snapshot's tree and the trees below it that were not checked before.
    mutating func check(_ root: TreeReference) throws {
      var open = reaches[root] == nil ? [try examine(at: root)] : []
      while var level = open.popLast() {
        guard let next = level.below.popLast() else {
          reaches[level.tree] = level.reach
          continue
        }
        if let reach = reaches[next.tree] {
          level.reach.add(reach, name: next.name)
          open.append(level)
        } else if open.count + 2 > FormatLimit.depth {
          isWhole = false
          open.append(level)
        } else {
          level.below.append(next)
          open.append(level)
          open.append(try examine(at: next.tree))
        }
      }
      guard let reach = reaches[root] else { return }
      if reach.directories > FormatLimit.depth || reach.bytes > FormatLimit.path { isWhole = false }
    }

    private mutating func examine(at tree: TreeReference) throws -> Open {
      try request.checkNotStopped()
      var level = Open(tree: tree)
      _ = index.fault(of: BlobID(kind: .tree, digest: tree.digest), length: nil)
      do {
        let failure = try reader.forEachEntry(of: tree) { entry in
          entries += 1
          level.reach.bytes = max(level.reach.bytes, entry.name.count)
          if case .directory(let below) = entry.node {
            level.below.append((below, entry.name.count))
          }
          // The paths are looked for later if anything is lost.
          if isWhole, let fault = try Self.fault(of: entry, reader, index) { record(fault) }
        }
        if let failure { record(CheckedIndex.Fault(failure)) }
      } catch let error as StoreError where error.kind == .damaged {
        record(CheckedIndex.Fault(error))
      }
      return level
    }

    private mutating func record(_ fault: CheckedIndex.Fault) {
      switch fault {
      case .lost: isWhole = false
      case .unindexed: hasUnindexed = true
      case .refused: hasRefused = true
      }
    }

    /// Returns the reason an entry, apart from its children, cannot be restored completely, or nil
    /// if it can. A loss takes precedence over an unknown state.
    static func fault(
      of entry: TreeEntry, _ reader: RepositoryReader, _ index: CheckedIndex
    ) throws -> CheckedIndex.Fault? {
      var unknown: CheckedIndex.Fault?
      for attribute in entry.attributes {
        switch fault(of: attribute, index) {
        case .lost(let reason): return .lost("attribute \(attribute.name): \(reason)")
        case let fault: unknown = unknown ?? fault
        }
      }
      guard case .file(let content) = entry.node else { return unknown }
      let found = try fault(of: content, reader, index)
      return found?.isLoss == true ? found : unknown ?? found
    }

    /// Returns the reason the value of an attribute is lost, or nil if it is not.
    static func fault(of attribute: Attribute, _ index: CheckedIndex) -> CheckedIndex.Fault? {
      guard case .blob(let digest, let length) = attribute.value else { return nil }
      return index.fault(of: BlobID(kind: .data, digest: digest), length: length)
    }

    /// Returns the reason some content of a file is lost, or nil if it is all there.
    static func fault(
      of content: Content, _ reader: RepositoryReader, _ index: CheckedIndex
    ) throws -> CheckedIndex.Fault? {
      var first: CheckedIndex.Fault?
      do {
        try reader.forEachPiece(of: content) { _, piece in
          guard first?.isLoss != true, case .blob(let digest, let length) = piece else { return }
          let fault = index.fault(of: BlobID(kind: .data, digest: digest), length: length)
          if fault?.isLoss == true || first == nil { first = fault }
        }
      } catch let error as StoreError where error.kind == .damaged {
        let fault = CheckedIndex.Fault(error)
        if first == nil || fault.isLoss && first?.isLoss != true { first = fault }
      }
      return first
    }
  }
}

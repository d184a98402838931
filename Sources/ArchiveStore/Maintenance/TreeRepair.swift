internal import Codecs
internal import SystemIO

/// Stores trees again without their losses. Each distinct tree is processed once; trees without
/// losses are not stored again.
///
/// Keeps about 80 bytes for each distinct tree.
struct TreeRepair {
  /// The result for a tree.
  enum State: Hashable, Sendable {
    /// Everything in it and below it can be restored.
    case whole
    /// The tree without its losses; in a dry run the tree itself.
    case partial(TreeReference)
    /// Nothing in it can be read.
    case lost
  }

  let reader: RepositoryReader
  let index: CheckedIndex
  /// The session that stores trees; nil in a dry run.
  private let session: WritingSession?
  let checkNotStopped: () throws(StoreError) -> Void
  private(set) var states: [TreeReference: State] = [:]

  init(
    _ reader: RepositoryReader, _ index: CheckedIndex, into session: WritingSession?,
    checkNotStopped: @escaping () throws(StoreError) -> Void
  ) {
    (self.reader, self.index, self.session) = (reader, index, session)
    self.checkNotStopped = checkNotStopped
  }

  /// A tree whose subdirectories are being processed.
  private struct Open {
    let tree: TreeReference
    var below: [TreeReference] = []
    /// Whether the directory itself cannot be read.
    var isLost = false
    /// Whether everything found so far can be restored.
    var isWhole = true
  }

  /// Processes a tree and the trees below it that were not processed before.
  ///
  /// - Throws: `damaged` if it has too many levels; `interrupted`; failures of the storage.
  mutating func repair(_ root: TreeReference) throws -> State {
    var open = states[root] == nil ? [try examine(at: root)] : []
    while var level = open.popLast() {
      guard let next = level.below.popLast() else {
        states[level.tree] = try finish(level)
        continue
      }
      if let state = states[next] {
        if state != .whole { level.isWhole = false }
        open.append(level)
      } else {
        level.below.append(next)
        open.append(level)
        guard open.count < FormatLimit.depth else {
          throw StoreError.damaged(
            "tree \(root.digest.hex)", "it lies deeper than \(FormatLimit.depth) directories")
        }
        open.append(try examine(at: next))
      }
    }
    return states[root] ?? .lost
  }

  private func examine(at tree: TreeReference) throws -> Open {
    try checkNotStopped()
    var level = Open(tree: tree)
    do {
      let failure = try reader.forEachEntry(of: tree) { entry in
        if case .directory(let below) = entry.node { level.below.append(below) }
        if try RepositoryCheck.TreeCheck.fault(of: entry, reader, index)?.isLoss == true {
          level.isWhole = false
        }
      }
      if failure != nil { level.isWhole = false }
    } catch let error as StoreError where error.kind == .damaged {
      level.isLost = true
    }
    return level
  }

  private func finish(_ level: Open) throws -> State {
    if level.isLost { return .lost }
    if level.isWhole { return .whole }
    guard let session else { return .partial(level.tree) }
    var directory = EncodedDirectory()
    _ = try reader.forEachEntry(of: level.tree) { entry in
      guard let kept = try rest(of: entry) else { return }
      let encoded = try kept.encoded()
      try kept.name.withSpan { name throws(StoreError) in try directory.append(name, encoded) }
    }
    return .partial(try session.storeTree(directory))
  }

  /// Returns an entry without its losses, or nil if nothing of it remains.
  private func rest(of entry: TreeEntry) throws -> TreeEntry? {
    var entry = entry
    switch entry.node {
    case .file(let content):
      if try isLost(content) { return nil }
    case .directory(let tree):
      switch states[tree] {
      case .lost: return nil
      case .partial(let rest): entry.node = .directory(rest)
      case .whole, nil: break
      }
    default: break
    }
    entry.attributes.removeAll(where: isLost)
    return entry
  }

  func isLost(_ content: Content) throws -> Bool {
    try RepositoryCheck.TreeCheck.fault(of: content, reader, index)?.isLoss == true
  }

  func isLost(_ attribute: Attribute) -> Bool {
    RepositoryCheck.TreeCheck.fault(of: attribute, index)?.isLoss == true
  }
}

extension Folder {
  /// Removes a child with all that is below it, of any depth, by folder handles and never through a
  /// link. Goes on after a failure and throws the first one at the end.
  public func removeTree(_ name: ByteString) throws(SystemError) {
    let status = try status(name)
    guard status.kind == .directory else { return try remove(name) }
    var removal = Removal(root: try duplicate())
    removal.run(name, status.identity)
    if let failure = removal.failure { throw failure }
  }
}

/// The removal of a tree: each folder is listed once, its files go at once, it goes itself when what
/// is below it is gone.
private struct Removal: ~Copyable {
  private enum Step {
    case empty(ByteString, FileIdentity, depth: Int)
    case remove(ByteString, depth: Int)
  }

  private var ladder: FolderLadder
  private var steps: [Step] = []
  private(set) var failure: SystemError?

  init(root: consuming Folder) { ladder = FolderLadder(root: root) }

  mutating func run(_ name: ByteString, _ identity: FileIdentity) {
    steps = [.empty(name, identity, depth: 0)]
    while let step = steps.popLast() {
      do throws(SystemError) {
        try take(step)
      } catch {
        failure = failure ?? error
      }
    }
  }

  private mutating func take(_ step: Step) throws(SystemError) {
    switch step {
    case .empty(let name, let identity, let depth):
      try ladder.ascend(to: depth)
      try ladder.descend(name, identity)
      steps.append(.remove(name, depth: depth))
      try emptyFolderInHand(depth: depth + 1)
    case .remove(let name, let depth):
      try ladder.ascend(to: depth)
      try ladder.withFolder { folder throws(SystemError) in try folder.removeFolder(name) }
    }
  }

  private mutating func emptyFolderInHand(depth: Int) throws(SystemError) {
    let folders = try ladder.withFolder { folder throws(SystemError) in
      var folders: [Step] = []
      for name in try folder.names() {
        let status = try folder.status(name)
        if status.kind == .directory {
          folders.append(.empty(name, status.identity, depth: depth))
        } else {
          try folder.remove(name)
        }
      }
      return folders
    }
    steps += folders
  }
}

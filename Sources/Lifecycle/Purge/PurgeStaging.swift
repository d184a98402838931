internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// Where directories wait that are deleted as one: `.sandboxctl/purge` in their container, on the same
/// volume as they are.
///
/// A directory comes there by one rename, after a note of whence (the target of a link, for which even
/// a full volume mostly has room). Only when it was found to be what was planned it gets a name that
/// dooms it. So of what a killed purge leaves, the next one deletes what is doomed and takes back
/// what was not looked at yet: that may be something precious which another program put in the
/// directory's place in that moment.
struct PurgeStaging: ~Copyable {
  let directory: Directory

  private static let name: ByteString = "purge"
  private static let pendingDeletion: ByteString = "doomed-"
  private static let origin: ByteString = ".origin"

  /// Opens it in a container, making it if need be.
  init(in root: borrowing Directory) throws(SystemError) {
    let own = try root.makeDirectory(OwnNames.directory, permissions: 0o700)
    let made = try own.makeDirectory(Self.name, permissions: 0o700)
    guard try made.status().identity.device == root.status().identity.device else {
      throw SystemError.replaced(made.path)
    }
    try ControlOwner.give(made.path)
    directory = made
  }

  /// Moves a child of a directory here; gives its name here. `path` is its own, from the container on. With `leavingTwin` an empty directory with the
  /// same mode, owner and attributes takes its place in the same step.
  func take(
    _ name: ByteString, at path: ByteString, from parent: borrowing Directory, leavingTwin: Bool
  ) throws(SystemError) -> ByteString {
    let moved = ByteString(Host.randomHex(bytes: 8))
    // On a full volume there may be no room for it: then what a kill leaves is only told of.
    try? directory.createLink(moved.joined(Self.origin), to: path)
    guard leavingTwin else {
      try parent.rename(name, to: moved, in: directory, replacing: false)
      return moved
    }
    try makeTwin(of: name, in: parent, as: moved)
    try parent.exchange(name, with: moved, in: directory)
    return moved
  }

  private func makeTwin(
    of name: ByteString, in parent: borrowing Directory, as twin: ByteString
  ) throws(SystemError) {
    let status = try parent.status(name)
    try directory.createDirectory(twin, permissions: 0o700)
    let (old, new) = (parent.attributes(of: name), directory.attributes(of: twin))
    for key in try old.names() {
      if let value = try old.value(of: key) { try? new.set(key, to: value) }
    }
    let made = try directory.directory(twin)
    try? made.setOwner(user: status.user, group: status.group)
    try made.setPermissions(status.permissions)
  }

  /// Moves a directory back to where it was.
  func restoreOriginal(
    _ moved: ByteString, _ name: ByteString, to parent: borrowing Directory, wasExchanged: Bool
  ) throws(SystemError) {
    if wasExchanged {
      try parent.exchange(name, with: moved, in: directory)
      try directory.removeDirectory(moved)
    } else {
      try directory.rename(moved, to: name, in: parent, replacing: false)
    }
    try? directory.remove(moved.joined(Self.origin))
  }

  /// Says that a directory here is what was planned; gives the name under which it is to be deleted.
  func doom(_ moved: ByteString) throws(SystemError) -> ByteString {
    let name = Self.pendingDeletion.joined(moved)
    try directory.rename(moved, to: name, in: directory, replacing: false)
    try? directory.remove(moved.joined(Self.origin))
    return name
  }

  /// Removes it when nothing waits in it.
  consuming func close(in root: borrowing Directory) {
    guard let own = try? root.directory(OwnNames.directory) else { return }
    try? own.removeDirectory(Self.name)
    try? root.removeDirectory(OwnNames.directory)
  }

  /// What became of what killed purges left in a container.
  struct Leftovers {
    /// Of what was deleted.
    var bytes: UInt64 = 0
    /// What could not be taken back, by its path.
    var kept: [ByteString] = []
  }

  /// Ends what purges that were killed had begun.
  static func settleLeftovers(in root: borrowing Directory) -> Leftovers {
    var left = Leftovers()
    guard let own = try? root.directory(OwnNames.directory), let aside = try? own.directory(name),
      (try? aside.status().identity.device) == (try? root.status().identity.device)
    else { return left }
    for name in (try? aside.names()) ?? [] {
      if name.bytes.starts(with: pendingDeletion.bytes) {
        left.bytes += remove(name, in: aside)
      } else if !isOrigin(name), (try? rollBack(name, from: aside, into: root)) == nil {
        left.kept.append(aside.path.appending(name))
      }
    }
    for name in (try? aside.names()) ?? [] where isOrigin(name) {
      let moved = ByteString(name.bytes.dropLast(origin.count))
      if ((try? aside.statusIfPresent(moved)) ?? nil) == nil { try? aside.remove(name) }
    }
    try? own.removeDirectory(Self.name)
    try? root.removeDirectory(OwnNames.directory)
    return left
  }

  private static func isOrigin(_ name: ByteString) -> Bool {
    name.bytes.suffix(origin.count) == origin.bytes
  }

  private static func remove(_ name: ByteString, in aside: borrowing Directory) -> UInt64 {
    guard let status = try? aside.status(name) else { return 0 }
    var sum = LeftoverSum(bytes: status.allocated)
    if status.kind == .directory, let directory = try? aside.directory(name) {
      var walk = Walk(directory)
      walk.run(&sum, state: ())
    }
    return (try? aside.removeTree(name)) == nil ? 0 : sum.bytes
  }

  /// Moves a directory back that no purge has looked at yet. An empty directory in its place is the twin
  /// that was left there; an empty one here, where something stands in its place, is the twin that
  /// was not put there yet, and goes.
  private static func rollBack(
    _ moved: ByteString, from aside: borrowing Directory, into root: borrowing Directory
  ) throws {
    let path = try aside.target(of: moved.joined(origin))
    // The app may write here, too: its word leads nowhere outside of the container.
    guard PathRules.fault(inPath: path) == nil, let name = path.lastComponent else {
      throw SystemError.replaced(moved)
    }
    let ladder = PathLadder(root: try root.duplicate())
    try ladder.withDirectory(path.components.dropLast()) { parent throws(SystemError) in
      if try parent.statusIfPresent(name) != nil, (try? aside.removeDirectory(moved)) != nil {
        return
      }
      try? parent.removeDirectory(name)
      try aside.rename(moved, to: name, in: parent, replacing: false)
    }
    try aside.remove(moved.joined(origin))
  }
}

extension ByteString {
  fileprivate func joined(_ other: ByteString) -> ByteString {
    ByteString(Array(bytes) + other.bytes)
  }
}

/// Adds up what is left in a directory.
private struct LeftoverSum: WalkVisitor {
  var bytes: UInt64

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
    descent: inout WalkDescent<Void>
  ) {
    for number in 0..<batch.entries.count {
      let status = batch.entries[number].status
      if status.kind == .directory { descent.enter(number, with: ()) }
      if status.kind == .directory || status.links == 1 { bytes += status.allocated }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: Void) {}
}

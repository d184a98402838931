internal import SandboxModel
internal import SystemIO

/// Where folders wait that are deleted as one: `.sandboxctl/purge` in their container, on the same
/// volume as they are. A folder comes there by one rename, and what a killed purge leaves there is
/// deleted by the next one.
struct AsideFolder: ~Copyable {
  let folder: Folder

  private static let name: ByteString = "purge"

  /// Opens it in a container, making it if need be.
  init(in root: borrowing Folder) throws(SystemError) {
    let own = try root.makeFolder(OwnNames.folder, permissions: 0o700)
    let made = try own.makeFolder(Self.name, permissions: 0o700)
    guard try made.status().identity.device == root.status().identity.device else {
      throw SystemError.replaced(made.path)
    }
    folder = made
  }

  /// Moves a child of a folder here; gives its name here. With `leavingTwin` an empty folder with the
  /// same mode, owner and attributes takes its place in the same step.
  func take(
    _ name: ByteString, from parent: borrowing Folder, leavingTwin: Bool
  ) throws(SystemError) -> ByteString {
    let moved = ByteString(Host.randomHex(bytes: 8))
    guard leavingTwin else {
      try parent.rename(name, to: moved, in: folder, replacing: false)
      return moved
    }
    try makeTwin(of: name, in: parent, as: moved)
    try parent.exchange(name, with: moved, in: folder)
    return moved
  }

  private func makeTwin(
    of name: ByteString, in parent: borrowing Folder, as twin: ByteString
  ) throws(SystemError) {
    let status = try parent.status(name)
    try folder.createFolder(twin, permissions: 0o700)
    let (old, new) = (parent.attributes(of: name), folder.attributes(of: twin))
    for key in try old.names() {
      if let value = try old.value(of: key) { try? new.set(key, to: value) }
    }
    let made = try folder.folder(twin)
    try? made.setOwner(user: status.user, group: status.group)
    try made.setPermissions(status.permissions)
  }

  /// Moves a folder back to where it was.
  func giveBack(
    _ moved: ByteString, _ name: ByteString, to parent: borrowing Folder, wasExchanged: Bool
  ) throws(SystemError) {
    guard wasExchanged else {
      return try folder.rename(moved, to: name, in: parent, replacing: false)
    }
    try parent.exchange(name, with: moved, in: folder)
    try folder.removeFolder(moved)
  }

  /// Removes it when nothing waits in it.
  consuming func close(in root: borrowing Folder) {
    guard let own = try? root.folder(OwnNames.folder) else { return }
    try? own.removeFolder(Self.name)
    try? root.removeFolder(OwnNames.folder)
  }

  /// Deletes what was left here by a purge that was killed; gives its bytes.
  static func removeLeftovers(in root: borrowing Folder) -> UInt64 {
    guard let own = try? root.folder(OwnNames.folder), let aside = try? own.folder(name),
      (try? aside.status().identity.device) == (try? root.status().identity.device)
    else { return 0 }
    var bytes: UInt64 = 0
    for left in (try? aside.names()) ?? [] {
      guard let status = try? aside.status(left) else { continue }
      var sum = LeftoverSum(bytes: status.allocated)
      if status.kind == .directory, let folder = try? aside.folder(left) {
        var walk = Walk(folder)
        walk.run(&sum, state: ())
      }
      if (try? aside.removeTree(left)) != nil { bytes += sum.bytes }
    }
    try? own.removeFolder(name)
    try? root.removeFolder(OwnNames.folder)
    return bytes
  }
}

/// Adds up what is left in a folder.
private struct LeftoverSum: WalkVisitor {
  var bytes: UInt64

  mutating func visit(
    _ batch: borrowing WalkBatch, of folder: borrowing WalkFolder, state: Void,
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

package import Codecs
package import SystemIO

/// All restored properties of an entry of a tree, to compare two trees.
package struct TreeRecord: Equatable, Sendable {
  package var kind: FileKind
  package var permissions: UInt16
  package var user: UInt32
  package var group: UInt32
  /// The size in bytes, except for directories.
  package var size: UInt64
  package var modified: Timestamp
  /// The number of a device file.
  package var device: UInt64
  /// The target of a symbolic link.
  package var target: ByteString?
  /// The hash of a file's bytes.
  package var content: Digest?
  package var extents: [Extent]
  package var attributes: [ByteString: [UInt8]]
  /// The flags of chattr(1) that are restored.
  package var flags: UInt32 = 0
  /// The smallest path of a hard-linked file in the tree.
  package var firstName: ByteString?

  /// All entries below a directory, by path.
  ///
  /// - Throws: the first error for an entry that cannot be read.
  package static func all(
    in directory: TemporaryDirectory, _ path: ByteString
  ) throws -> [ByteString: TreeRecord] {
    var lister = Lister()
    var walk = Walk(try Directory.open(path: directory.path(path)))
    walk.run(&lister, state: ())
    if let error = lister.error { throw error }
    for names in lister.identities.values {
      for name in names { lister.records[name]?.firstName = names.min() }
    }
    return lister.records
  }

  fileprivate init(
    _ name: ByteString, _ status: FileStatus, in directory: borrowing Directory
  ) throws(SystemError) {
    kind = status.kind
    permissions = status.permissions
    (user, group) = (status.user, status.group)
    size = status.kind == .directory ? 0 : status.size
    modified = status.modified
    device = kind == .characterDevice || kind == .blockDevice ? status.specialDevice : 0
    (extents, attributes) = ([], [:])
    let present = directory.attributes(of: name)
    for key in try present.names() { attributes[key] = try present.value(of: key) }
    if kind == .symlink { target = try directory.target(of: name) }
    if kind == .directory { flags = Self.settable(try directory.directory(name).flags()) }
    if kind == .file {
      let file = try directory.file(name)
      content = try file.readAll(limit: 64 << 20).map { Blake2b.hash($0) }
      extents = try file.extents(size: status.size)
      flags = Self.settable(try file.flags())
    }
  }

  private static func settable(_ flags: UInt32?) -> UInt32 {
    (flags ?? 0) & Descriptor.settableFlags
  }
}

private struct Lister: WalkVisitor {
  var records: [ByteString: TreeRecord] = [:]
  var identities: [FileIdentity: [ByteString]] = [:]
  var error: SystemError?

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
    descent: inout WalkDescent<Void>
  ) {
    for (index, entry) in batch.entries.enumerated() {
      let name = batch.name(entry)
      let path = directory.relativePath.appending(name)
      do throws(SystemError) {
        records[path] = try TreeRecord(name, entry.status, in: directory.directory)
      } catch {
        self.error = self.error ?? error
      }
      if entry.status.links > 1, entry.status.kind == .file {
        identities[entry.status.identity, default: []].append(path)
      }
      if entry.status.kind == .directory { descent.enter(index, with: ()) }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: Void) {
    error = error ?? problem.error
  }
}

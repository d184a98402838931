internal import Codecs
internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import Scenario
package import SystemIO

/// The facts about a device: its entries with the verdicts of a policy.
package struct DeviceFacts: ScenarioFacts {
  private let scan: DeviceScan
  /// The names of the attributes that exclude entries from backups, in any version.
  private let attributes: Set<ByteString>
  private let readsMarks: Bool
  /// The entries, by path. Each expectation of a step uses them.
  private var found: [ScenarioEntry] = []
  /// The destination of all backups of a case: its own repository, on this host and unencrypted.
  static let destination = Destination(isUnencrypted: true)

  /// Scans a device.
  ///
  /// - Parameter attributes: the attributes on Linux to look for; nil if no expectation refers to
  ///   them.
  /// - Throws: `SystemError` if a container or the marks of an entry cannot be read.
  init(_ device: Device, _ policy: CompiledPolicy, attributes: Set<ByteString>?) throws {
    var options = ScanOptions(destination: Self.destination)
    // The cases themselves run on several threads.
    options.workers = 1
    scan = DeviceScan.run(device.stating(groupsOf: policy), policy: policy, options: options)
    self.attributes = attributes ?? []
    readsMarks = attributes != nil
    var found: [ScenarioEntry] = []
    for container in scan.containers { try add(container, to: &found) }
    self.found = found.sorted { $0.path < $1.path }
  }

  package func entries() throws -> [ScenarioEntry] { found }

  private func add(_ scan: ContainerScan, to found: inout [ScenarioEntry]) throws {
    var cursor = try DirectoryCursor(root: Directory.open(resolved: scan.container.absolutePath))
    for index in scan.entries.indices.dropFirst() {
      let path = scan.path(index)
      if path.components.contains(where: { OwnNames.has($0) }) { continue }
      let entry = scan.entries[index]
      found.append(
        ScenarioEntry(
          path: scan.container.logicalPrefix.appending(path), kind: .init(entry.status.kind),
          verdicts: entry.verdicts, marks: try marks(path, &cursor)))
    }
  }

  /// Returns the marks of an entry, without the `user.` that Linux requires before them.
  private func marks(_ path: ByteString, _ cursor: inout DirectoryCursor) throws -> [ByteString] {
    guard readsMarks else { return [] }
    let names = try cursor.withDirectory(at: path.parent.components) {
      directory throws(SystemError) in
      try directory.attributes(of: path.lastComponent ?? "").names()
    }
    return names.filter(attributes.contains).map(\.withoutSpace)
  }

  package func digest(of entry: ScenarioEntry) throws -> [UInt8]? {
    guard let (container, inner) = location(of: entry.path), let name = inner.lastComponent else {
      return nil
    }
    var cursor = try DirectoryCursor(root: Directory.open(resolved: container.absolutePath))
    switch entry.kind {
    case .link:
      let target = try cursor.withDirectory(at: inner.parent.components) {
        directory throws(SystemError) in try directory.target(of: name)
      }
      return Blake2b.hash(Array(target.bytes)).bytes
    case .file:
      let file = try cursor.withDirectory(at: inner.parent.components) {
        directory throws(SystemError) in try directory.fileUntouched(name)
      }
      var hash = Blake2b()
      _ = try file.readPieces(
        size: file.status().size, isSparse: false, data: { hash.update($0) }, hole: { _ in })
      return hash.finish().bytes
    case .directory, .special: return nil
    }
  }

  private func location(of path: ByteString) -> (container: Container, inner: ByteString)? {
    for scan in scan.containers where path.isWithin(scan.container.logicalPrefix) {
      return (scan.container, path.relative(to: scan.container.logicalPrefix))
    }
    return nil
  }
}

extension DeviceFacts {
  /// Returns the draft of a scenario for a device, and the entries that could not be read: the
  /// draft expects nothing of the data in them.
  package static func draft(
    of device: Device, _ policy: CompiledPolicy
  ) throws -> (draft: ScenarioDraft, unreadable: [PathRemark]) {
    let facts = try DeviceFacts(device, policy, attributes: nil)
    let draft = ScenarioDraft(
      root: device.root, layout: device.layout, entries: try facts.entries(),
      apps: device.apps.filter(\.isInstalled).map(\.identifier))
    return (draft, facts.scan.containers.flatMap(\.unreadableByLogicalPath))
  }
}

extension ScenarioEntry.Kind {
  /// The kind of an entry on a volume.
  fileprivate init(_ kind: FileKind) {
    self =
      switch kind {
      case .file: .file
      case .directory: .directory
      case .symlink: .link
      case .fifo, .socket, .characterDevice, .blockDevice: .special
      }
  }
}

extension ByteString {
  /// The name of an attribute without the namespace that Linux requires.
  fileprivate var withoutSpace: ByteString {
    let space = "user."
    return bytes.starts(with: space.utf8) ? ByteString(bytes.dropFirst(space.utf8.count)) : self
  }

  /// The name of an attribute on Linux.
  var attributeName: ByteString {
    let spaces = ["user.", "security.", "system.", "trusted."]
    return spaces.contains { bytes.starts(with: $0.utf8) }
      ? self : ByteString("user.").concatenating(self)
  }
}

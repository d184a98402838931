internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Looks on entries for the marks that a policy heeds in a kind of container: extended attributes,
/// and files that mark the folder that they lie in. An entry without marks costs no allocation.
struct MarkReader: ~Copyable {
  private var attributes: [(marker: Int, name: [UInt8], value: [UInt8]?)] = []
  private var files: [(marker: Int, name: [UInt8], beginning: [UInt8])] = []
  private var lookup = AttributeLookup()

  /// Finds out what to look for.
  init(_ policy: CompiledPolicy, _ kind: ContainerKind) {
    for (index, marker) in policy.markers.enumerated() where marker.kinds.contains(kind) {
      switch marker.sign {
      case .attribute(_, let value):
        guard let name = marker.linuxAttribute else { continue }
        attributes.append((index, Array(name.utf8), value.map { Array($0.utf8) }))
      case .file(let name, let beginning):
        files.append((index, Array(name.utf8), Array((beginning ?? "").utf8)))
      }
    }
  }

  /// Whether there is nothing to look for.
  var isIdle: Bool { attributes.isEmpty && files.isEmpty }

  /// The marks that a container's root bears.
  mutating func marks(onRoot root: borrowing Folder) throws(SystemError) -> MarkSet {
    var found: MarkSet = []
    if !attributes.isEmpty {
      try lookup.list(root)
      found = try marks { root.attributes }
    }
    var path = NameBuffer()
    return found.union(try fileMarks(&path, root))
  }

  /// The marks that a folder's child bears. The name is the same again afterwards.
  mutating func marks(
    on name: inout NameBuffer, isFolder: Bool, in folder: borrowing Folder
  ) throws(SystemError) -> MarkSet {
    var found: MarkSet = []
    if !attributes.isEmpty {
      try lookup.list(name, in: folder)
      found = try marks { folder.attributes(of: name.copy) }
    }
    return isFolder ? found.union(try fileMarks(&name, folder)) : found
  }

  /// Those of the listed attributes that are marks; their values are read where that matters.
  private func marks(_ entry: () -> ExtendedAttributes) throws(SystemError) -> MarkSet {
    if lookup.isEmpty { return [] }
    var found: MarkSet = []
    for (marker, name, value) in attributes where lookup.contains(name.span) {
      if let value, try entry().value(of: ByteString(name)) != value { continue }
      found.insert(MarkSet(marker: marker))
    }
    return found
  }

  /// The marks that files are to the folder that they lie in, by its path in `folder`.
  private func fileMarks(
    _ path: inout NameBuffer, _ folder: borrowing Folder
  ) throws(SystemError) -> MarkSet {
    var found: MarkSet = []
    let length = path.count
    defer { path.shorten(to: length) }
    for (marker, name, beginning) in files {
      path.shorten(to: length)
      path.descend(name.span)
      guard try folder.statusIfPresent(path)?.kind == .file else { continue }
      if try begins(path, with: beginning, folder) { found.insert(MarkSet(marker: marker)) }
    }
    return found
  }

  /// Whether a file begins with some bytes; one that cannot be opened is no mark.
  private func begins(
    _ path: borrowing NameBuffer, with bytes: [UInt8], _ folder: borrowing Folder
  ) throws(SystemError) -> Bool {
    if bytes.isEmpty { return true }
    do throws(SystemError) {
      return try folder.begins(path, with: bytes.span)
    } catch {
      if error.endsEverything { throw error }
      return false
    }
  }
}

internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Looks on entries for the marks that a policy heeds: extended attributes, and files that mark the
/// folder that they lie in.
struct MarkReader {
  private var attributes: [(marker: Int, name: ByteString, value: [UInt8]?)] = []
  private var files: [(marker: Int, name: ByteString, beginning: [UInt8])] = []

  /// Finds out what to look for in containers of a kind.
  init(_ policy: CompiledPolicy, _ kind: ContainerKind) {
    for (index, marker) in policy.markers.enumerated() where marker.kinds.contains(kind) {
      switch marker.sign {
      case .attribute(_, let value):
        guard let name = marker.linuxAttribute else { continue }
        attributes.append((index, ByteString(name), value.map { Array($0.utf8) }))
      case .file(let name, let beginning):
        files.append((index, ByteString(name), Array((beginning ?? "").utf8)))
      }
    }
  }

  /// Whether there is nothing to look for.
  var isIdle: Bool { attributes.isEmpty && files.isEmpty }

  /// The marks that an entry bears as extended attributes.
  func marks(on entry: ExtendedAttributes) throws(SystemError) -> MarkSet {
    if attributes.isEmpty { return [] }
    let names = try entry.names()
    if names.isEmpty { return [] }
    var found: MarkSet = []
    for (marker, name, value) in attributes where names.contains(name) {
      if let value, try entry.value(of: name) != value { continue }
      found.insert(MarkSet(marker: marker))
    }
    return found
  }

  /// The marks that files in a folder are to it: in a child of `folder`, or in `folder` itself.
  func marks(
    in child: ByteString?, of folder: borrowing Folder
  ) throws(SystemError) -> MarkSet {
    var found: MarkSet = []
    for (marker, name, beginning) in files {
      let path = child?.appending(name) ?? name
      guard let status = try folder.statusIfPresent(path), status.kind == .file else { continue }
      if try begins(with: beginning, path, folder) { found.insert(MarkSet(marker: marker)) }
    }
    return found
  }

  /// Whether a file begins with some bytes; one that cannot be opened is no mark.
  private func begins(
    with bytes: [UInt8], _ path: ByteString, _ folder: borrowing Folder
  ) throws(SystemError) -> Bool {
    if bytes.isEmpty { return true }
    do throws(SystemError) {
      return try folder.file(path).read(count: bytes.count, at: 0) == bytes
    } catch {
      if error.endsEverything { throw error }
      return false
    }
  }
}

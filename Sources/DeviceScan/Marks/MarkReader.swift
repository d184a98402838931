internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Reads the marks that a policy uses in a kind of container: extended attributes, and files that
/// mark their directory. An entry without marks costs no allocation.
struct MarkReader: ~Copyable {
  private var attributes: [(marker: Int, name: [UInt8], value: [UInt8]?)] = []
  private var files: [(marker: Int, name: [UInt8], beginning: [UInt8])] = []
  private var lookup = AttributeLookup()
  /// Whether the marks found on the current entry are valid as long as its change time is the same.
  private var isLasting = true

  /// Determines the marks to look for: all, or those that affect what a purge may remove.
  init(_ policy: CompiledPolicy, _ kind: ContainerKind, isForPurge: Bool) {
    for (index, marker) in policy.markers.enumerated()
    where marker.kinds.contains(kind) && (!isForPurge || marker.concernsPurge) {
      switch marker.sign {
      case .attribute(_, let value):
        guard let name = marker.linuxAttribute else { continue }
        attributes.append((index, Array(name.utf8), value.map { Array($0.utf8) }))
      case .file(let name, let beginning):
        files.append((index, Array(name.utf8), Array((beginning ?? "").utf8)))
      }
    }
  }

  /// Whether there are no marks to look for.
  var isIdle: Bool { attributes.isEmpty && files.isEmpty }

  /// A description of the marks to look for, as bytes. Equal descriptions find equal marks.
  var search: [UInt8] {
    var bytes: [UInt8] = []
    for (marker, name, value) in attributes {
      bytes += [1, UInt8(marker)] + name + [0] + (value.map { [1] + $0 } ?? [0]) + [0]
    }
    for (marker, name, beginning) in files {
      bytes += [2, UInt8(marker)] + name + [0] + beginning + [0]
    }
    return bytes
  }

  /// Returns the marks of a container's root, which has the given status.
  mutating func marks(
    onRoot root: borrowing Directory, _ status: FileStatus, _ cache: inout ExclusionMarkCache?
  ) throws(SystemError) -> MarkSet {
    try recall(status, in: &cache) { reader throws(SystemError) in
      var found: MarkSet = []
      if !reader.attributes.isEmpty {
        try reader.lookup.list(root)
        found = try reader.marks { root.attributes }
      }
      var path = NameBuffer()
      return found.union(try reader.fileMarks(&path, root))
    }
  }

  /// Returns the marks of a directory's child, which has the given status. The name is restored
  /// before the return.
  mutating func marks(
    on name: inout NameBuffer, _ status: FileStatus, in directory: borrowing Directory,
    _ cache: inout ExclusionMarkCache?
  ) throws(SystemError) -> MarkSet {
    try recall(status, in: &cache) { reader throws(SystemError) in
      var found: MarkSet = []
      if !reader.attributes.isEmpty {
        try reader.lookup.list(name, in: directory)
        found = try reader.marks { directory.attributes(of: name.copy) }
      }
      return status.kind == .directory ? found.union(try reader.fileMarks(&name, directory)) : found
    }
  }

  /// Returns the marks in the cache, or those that `look` finds, which are cached if they are
  /// lasting.
  private mutating func recall(
    _ status: FileStatus, in cache: inout ExclusionMarkCache?,
    or look: (inout MarkReader) throws(SystemError) -> MarkSet
  ) throws(SystemError) -> MarkSet {
    if isIdle { return [] }
    let fingerprint = cache?.fingerprint(status)
    if let fingerprint, let known = cache?.marks(fingerprint) { return known }
    isLasting = true
    let found = try look(&self)
    if let fingerprint, isLasting, lookup.isAnswered {
      cache?.remember(fingerprint, status: status, marks: found)
    }
    return found
  }

  /// Returns the marks among the listed attributes; reads their values only if these matter.
  private func marks(_ entry: () -> ExtendedAttributes) throws(SystemError) -> MarkSet {
    if lookup.isEmpty { return [] }
    var found: MarkSet = []
    for (marker, name, value) in attributes where lookup.contains(name.span) {
      if let value, try entry().value(of: ByteString(name)) != value { continue }
      found.insert(MarkSet(marker: marker))
    }
    return found
  }

  /// Returns the marks that files set on their directory, by its path in `directory`.
  private mutating func fileMarks(
    _ path: inout NameBuffer, _ directory: borrowing Directory
  ) throws(SystemError) -> MarkSet {
    var found: MarkSet = []
    let length = path.count
    defer { path.shorten(to: length) }
    for (marker, name, beginning) in files {
      path.shorten(to: length)
      path.descend(name.span)
      guard let status = try directory.statusIfPresent(path) else { continue }
      // The content of such a file may change while the directory's change time stays the same.
      isLasting = false
      guard status.kind == .file else { continue }
      if try begins(path, with: beginning, directory) { found.insert(MarkSet(marker: marker)) }
    }
    return found
  }

  /// Whether a file begins with some bytes; false if it cannot be opened.
  private func begins(
    _ path: borrowing NameBuffer, with bytes: [UInt8], _ directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    if bytes.isEmpty { return true }
    do throws(SystemError) {
      return try directory.begins(path, with: bytes.span)
    } catch {
      if error.endsEverything { throw error }
      return false
    }
  }
}

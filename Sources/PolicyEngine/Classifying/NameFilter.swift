internal import SandboxModel

/// The names that a walk looks for: marker files, and siblings that rules test for.
struct NameFilter: Sendable {
  /// The names of marker files.
  let files: [([UInt8], MarkSet)]
  /// The names of marker attributes.
  let attributes: [([UInt8], MarkSet)]
  /// A bit for each length of the file names; the last bit stands for all greater lengths.
  let fileLengths: UInt64
  /// A bit for each length of the sibling names.
  let siblingLengths: UInt64
  /// The markers for each container kind, by the index of the kind.
  let marksByKind: [UInt64]
  /// The markers that directories pass on to everything below.
  let inherited: UInt64
  /// Whether markers exist, whose effect can depend on a cache directory above.
  let asksForCaches: Bool

  init(_ policy: CompiledPolicy) {
    var files: [([UInt8], MarkSet)] = []
    var attributes: [([UInt8], MarkSet)] = []
    var inherited: UInt64 = 0
    var byKind = [UInt64](repeating: 0, count: ContainerKind.allCases.count)
    for (index, marker) in policy.markers.enumerated() {
      let mark = MarkSet(marker: index)
      if case .file(let name, _) = marker.sign { Self.add(mark, for: name, to: &files) }
      if let name = marker.linuxAttribute { Self.add(mark, for: name, to: &attributes) }
      if marker.isInherited { inherited |= mark.rawValue }
      for (place, kind) in ContainerKind.allCases.enumerated() where marker.kinds.contains(kind) {
        byKind[place] |= mark.rawValue
      }
    }
    self.files = files
    self.attributes = attributes
    self.inherited = inherited
    marksByKind = byKind
    fileLengths = Self.lengths(files.map(\.0))
    siblingLengths = Self.lengths(policy.siblingNames)
    asksForCaches = !policy.markers.isEmpty
  }

  private static func add(_ mark: MarkSet, for name: String, to known: inout [([UInt8], MarkSet)]) {
    let bytes = Array(name.utf8)
    if let index = known.firstIndex(where: { $0.0 == bytes }) {
      known[index].1.formUnion(mark)
    } else {
      known.append((bytes, mark))
    }
  }

  private static func lengths(_ names: [[UInt8]]) -> UInt64 {
    names.reduce(0) { $0 | 1 << UInt64(min($1.count, 63)) }
  }
}

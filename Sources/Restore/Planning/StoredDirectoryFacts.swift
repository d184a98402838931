internal import ArchiveStore
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The facts about a snapshot's directories, other than paths, on which the selection of their
/// contents depends: names that `sibling:` tests for, and files that mark their directory.
///
/// A backup looks for them on the device. A restore finds them in the snapshot's tree and among its
/// excluded directories, so that both decide in the same way. Only a single file that the backup
/// excluded, such as the tag of a directory that is stored in part, is in neither of these.
struct StoredDirectoryFacts {
  private let reader: RepositoryReader
  private let siblingNames: [[UInt8]]
  /// The files that can mark a directory so that a restore treats it differently.
  private let tags: [Tag]
  private let base: ByteString
  /// The rules that excluded directories, by the directory's logical path.
  private let excluded: [ByteString: String]

  private struct Tag {
    let mark: MarkSet
    let marker: Marker
    let name: ByteString
    let beginning: [UInt8]
  }

  /// Prepares for the directories of a container, or of a part of one, with a logical path.
  init(
    _ policy: CompiledPolicy, _ kind: ContainerKind, of snapshot: Snapshot, at base: ByteString,
    from reader: RepositoryReader
  ) {
    self.reader = reader
    self.base = base
    siblingNames = policy.siblingNames
    tags = policy.markers.enumerated().compactMap { index, marker in
      guard case .file(let name, let beginning) = marker.sign, marker.kinds.contains(kind),
        marker.settings.dataClass != nil || marker.settings.restore != nil
      else { return nil }
      return Tag(
        mark: MarkSet(marker: index), marker: marker, name: ByteString(name),
        beginning: Array((beginning ?? "").utf8))
    }
    let isAsked = !siblingNames.isEmpty || !tags.isEmpty
    excluded = Dictionary(
      (isAsked ? snapshot.excluded : []).lazy.filter { $0.path.isWithin(base) && $0.path != base }
        .map { ($0.path, $0.rule) },
      uniquingKeysWith: { first, _ in first })
  }

  /// Returns the marks that files set on a directory at a path in the container.
  func marks(on entry: TreeEntry, at path: ByteString) -> MarkSet {
    guard !tags.isEmpty, case .directory(let tree) = entry.node else { return [] }
    let rule = excluded[base.appending(path)]
    return tags.reduce(into: []) { found, tag in
      if rule == tag.marker.id || has(tag, in: tree) { found.insert(tag.mark) }
    }
  }

  /// Returns the names out of `asked` that a directory at a path in the container has.
  func siblings(_ asked: SiblingSet, in entry: TreeEntry, at path: ByteString) -> SiblingSet {
    guard case .directory(let tree) = entry.node else { return [] }
    var held: SiblingSet = []
    for (index, sibling) in siblingNames.enumerated() {
      let bit = SiblingSet(sibling: index)
      guard asked.contains(bit) else { continue }
      // A name with a slash at its end is that of a directory, any other that of a file.
      let isDirectory = sibling.last == ByteString.slash
      let name = ByteString(isDirectory ? Array(sibling.dropLast()) : sibling)
      let isExcluded = isDirectory && excluded[base.appending(path).appending(name)] != nil
      if isExcluded || stored(name, in: tree)?.isDirectory == isDirectory { held.insert(bit) }
    }
    return held
  }

  private func has(_ tag: Tag, in tree: TreeReference) -> Bool {
    guard case .file(let content) = stored(tag.name, in: tree)?.node else { return false }
    return tag.beginning.isEmpty || reader.begins(content, with: tag.beginning) == true
  }

  /// Returns a directory's entry; nil also if it cannot be read, which the walk reports.
  private func stored(_ name: ByteString, in tree: TreeReference) -> TreeEntry? {
    try? reader.entry(at: name, in: tree)
  }
}

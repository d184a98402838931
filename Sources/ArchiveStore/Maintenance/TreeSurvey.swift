internal import SystemIO

/// The losses of a snapshot by path, and the totals of what remains.
///
/// The notes depend only on what is lost, not on how it was found, so that the same losses have the
/// same notes before and after damaged packs are repaired.
struct TreeSurvey {
  private(set) var notes = LimitedNotes()
  private(set) var totals: Totals
  private let classes: [ByteString: String]
  /// The classes of the directories above; nil above the first one with a class.
  private var above: [String?] = []
  private var classTotals: [String: Totals.Class] = [:]
  private var linked = LinkedContents()

  /// Surveys a snapshot whose tree was repaired.
  init(_ snapshot: Snapshot, _ trees: TreeRepair) throws {
    totals = Totals()
    totals.stored = snapshot.totals.stored
    classes = Dictionary(snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
    try trees.reader.walkPastDamage(snapshot.tree) { path, finding in
      try trees.checkNotStopped()
      return try add(finding, at: path, trees)
    }
    totals.classes = classTotals.values.sorted { $0.name < $1.name }
  }

  private mutating func add(
    _ finding: TreeWalk.Finding, at path: ByteString, _ trees: TreeRepair
  ) throws -> TreeWalk.Step {
    switch finding {
    case .entry(let entry): return try add(entry, at: path, trees)
    case .damage: record(path, path.isEmpty ? "everything is lost" : "the directory is lost")
    case .lost(let names, _):
      let from = names.after.map { "after '\($0)' " } ?? ""
      record(path, "entries of the directory are lost, the names \(from)up to '\(names.last)'")
    }
    return .enter
  }

  private mutating func add(
    _ entry: TreeEntry, at path: ByteString, _ trees: TreeRepair
  ) throws -> TreeWalk.Step {
    switch entry.node {
    case .file(let content):
      if try trees.isLost(content) {
        record(path, "its content is lost")
        return .skip
      }
    case .directory(let tree):
      if trees.states[tree] == .lost {
        record(path, "the directory is lost")
        return .skip
      }
    default: break
    }
    for attribute in entry.attributes where trees.isLost(attribute) {
      record(path, "its attribute '\(attribute.name)' is lost")
    }
    count(entry, at: path)
    return .enter
  }

  private mutating func record(_ path: ByteString, _ text: String) {
    notes.add(PathNote(path: path, note: text))
  }

  /// Counts an entry as a backup does: directories above the first one with a class do not count.
  private mutating func count(_ entry: TreeEntry, at path: ByteString) {
    let depth = path.bytes.count { $0 == UInt8(ascii: "/") }
    above.removeSubrange(min(depth, above.count)...)
    let name = classes[path] ?? above.last ?? nil
    above.append(name)
    if name == nil, !classes.isEmpty { return }
    totals.entries += 1
    guard case .file(let content) = entry.node else { return }
    let bytes = linked.isFirstName(of: content, in: entry.linkGroup) ? content.size : 0
    totals.files += 1
    totals.bytes.addClamping(bytes)
    guard let name else { return }
    classTotals[name, default: .init(name: name, files: 0, bytes: 0)].files += 1
    classTotals[name]?.bytes.addClamping(bytes)
  }
}

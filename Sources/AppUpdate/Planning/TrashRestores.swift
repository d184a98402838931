internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

/// The entries of an update's trash that are restored to a container: all whose paths are neither
/// occupied now nor restored from the snapshot. Only the topmost are listed, each with everything
/// below it.
struct TrashRestores: ~Copyable {
  private let found: ContainerScan?
  /// The lookup of the container's entries by name.
  private let lookup: EntryLookup?
  private let part: PlannedPart
  private let anchors: LinkAnchors
  private var classifier: Classifier
  private let containerKind: ContainerKind
  private let deleted: Set<ByteString>
  private(set) var restores: [PlannedContainer.TrashRestore] = []
  private(set) var links: [PlannedContainer.Link] = []

  /// Prepares the search.
  ///
  /// - Parameters:
  ///   - found: the current content of the container; nil if it is created.
  ///   - anchors: the current locations of the containers that links in the trash name.
  init(
    _ part: PlannedPart, _ kind: ContainerKind, in found: ContainerScan?, anchors: LinkAnchors,
    policy: CompiledPolicy
  ) {
    (self.part, self.containerKind, self.found, self.anchors) = (part, kind, found, anchors)
    lookup = found.map { EntryLookup($0) }
    classifier = Classifier(policy)
    deleted = Set(part.plan.deletedPaths)
  }

  /// Examines a directory of the trash.
  mutating func search(_ trash: consuming Directory, leaving names: [ByteString]) {
    let tree = part.plan.tree
    let root = tree.entries.indices.first { tree.entries[$0].depth == part.plan.target.shownDepth }
    search(trash, at: "", planned: root, leaving: names)
  }

  private mutating func search(
    _ trash: borrowing Directory, at path: ByteString, planned: Int?,
    leaving names: [ByteString] = []
  ) {
    let coming = planned.map { children(of: $0) } ?? [:]
    let present = lookup?.index(of: path)
    for name in ((try? trash.names()) ?? []).sorted() where !names.contains(name) {
      guard let status = try? trash.status(name) else { continue }
      let inner = path.appending(name)
      switch (kind(name, at: inner, coming: coming, present: present), status.kind) {
      case (nil, _): add(inner, status: status, in: trash, named: name)
      case (.directory, .directory):
        guard let directory = try? trash.directory(name) else { continue }
        search(directory, at: inner, planned: coming[name])
      default: break
      }
    }
  }

  /// Returns the kind of the entry that a path will have after the restore, or nil if it will be
  /// free.
  private func kind(
    _ name: ByteString, at inner: ByteString, coming: [ByteString: Int],
    present: Int?
  ) -> FileKind? {
    if let number = coming[name] { return part.plan.tree.entries[number].kind }
    guard let found, let index = present.flatMap({ lookup?.child(named: name, of: $0) }),
      !deleted.contains(inner)
    else { return nil }
    return found.entries[index].status.kind
  }

  /// Returns the entries in a directory that are restored from the snapshot, or are present and
  /// merged.
  private func children(of directory: Int) -> [ByteString: Int] {
    let tree = part.plan.tree
    var found: [ByteString: Int] = [:]
    var number = directory + 1
    while number < tree.entries.count, tree.entries[number].depth > tree.entries[directory].depth {
      let entry = tree.entries[number]
      if Int(entry.parent) == directory, entry.action.isWritten || entry.isMerged {
        found[tree.name(number)] = number
      }
      number += 1
    }
    return found
  }

  private mutating func add(
    _ inner: ByteString, status: FileStatus, in trash: borrowing Directory,
    named name: ByteString
  ) {
    var totals = EntryTotals()
    totals.add(status)
    record(name, status: status, in: trash, at: inner)
    if status.kind == .directory, let directory = try? trash.directory(name) {
      var walk = Walk(directory)
      var all = Contents()
      walk.run(&all, state: ByteString(""))
      totals.add(all.totals)
      for (path, status) in all.links {
        guard let root = try? trash.directory(name) else { continue }
        var cursor = DirectoryCursor(root: root)
        try? cursor.withDirectory(at: path.components.dropLast()) { directory throws(SystemError) in
          record(
            path.lastComponent ?? "", status: status, in: directory, at: inner.appending(path))
        }
      }
    }
    let query = EntryQuery(
      containerKind, app: part.app, path: inner.components.map { Array($0.bytes) },
      facts: EntryFacts(status.kind == .directory ? .directory : .file))
    restores.append(
      PlannedContainer.TrashRestore(
        inner: inner, from: trash.path.appending(name),
        dataClass: classifier.verdicts(query).keep.dataClass, totals: totals))
  }

  /// Records a link that named a container by its location before the update.
  private mutating func record(
    _ name: ByteString, status: FileStatus, in directory: borrowing Directory,
    at inner: ByteString
  ) {
    guard status.kind == .symlink, let before = try? directory.target(of: name),
      case .own(let after) = anchors.target(of: before)
    else { return }
    links.append(
      PlannedContainer.Link(
        path: part.path.appending(inner), before: before, after: after, inner: inner,
        status: status))
  }

  /// The content of a directory of the trash.
  private struct Contents: WalkVisitor {
    var totals = EntryTotals()
    var links: [(ByteString, FileStatus)] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: ByteString,
      descent: inout WalkDescent<ByteString>
    ) {
      for (index, entry) in batch.entries.enumerated() {
        let path = state.appending(batch.name(entry))
        totals.add(entry.status)
        if entry.status.kind == .symlink { links.append((path, entry.status)) }
        if entry.status.kind == .directory { descent.enter(index, with: path) }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: ByteString) {}
  }
}

extension PlannedPart {
  /// The app of the container, as the policy's rules for single apps name it.
  fileprivate var app: String? { plan.request.rules?.app }
}

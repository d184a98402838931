internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SystemIO

/// Decides, down the snapshot's tree, which entries are restored.
struct RestoreSelector: ~Copyable {
  /// The role of a snapshot's entry in a restore, according to the request and the policy.
  enum Role: Sendable {
    /// The entry is restored as it was stored.
    case whole
    /// A directory above restored entries: it is created only if it is missing and needed.
    case parentOnly
    /// A directory that is restored even if nothing in it is.
    case empty
    /// The entry is not restored.
    case skip
    /// The file is not restored, because the policy does not restore it.
    case omitted
    /// The entry is not restored, and the existing one is removed.
    case remove
  }

  /// The state that applies to the entries of a directory.
  struct Frame {
    /// The policy's state of the directory.
    var state: Classifier.State?
    /// The data class of the directory, if classes were requested.
    var dataClass = ""
    /// Whether the directory is the selected one or in it.
    var isInside = true
    /// Whether the directory was requested by name although the policy would not restore it.
    var isForced = false
    /// Whether the policy restores the directory empty or not at all, apart from entries in it with
    /// rules of their own.
    var isEmptied = false
    /// The number of directories above it in the container.
    var depth = 0
  }

  let rules: RestoreRules?
  /// The present entries of the target by path; nil unless the rules need them.
  private let scanned: EntryLookup?
  private let classes: ClassFilter
  private let base: ByteString
  private let selection: [ByteString]
  private var classifier: Classifier?
  private var databases = DatabaseRoles()

  init(_ request: RestoreRequest, _ snapshot: Snapshot, scanned: EntryLookup?) {
    rules = request.rules
    self.scanned = scanned
    base = request.path
    classes = ClassFilter(request.classes, snapshot)
    selection = request.rules?.selection.components ?? []
    classifier = request.rules.map { Classifier($0.policy, scanStart: snapshot.time.seconds) }
  }

  /// Whether everything is restored as it was stored.
  var isIdle: Bool { rules == nil && classes.isIdle }

  /// Returns the frame for the root directory of the walk.
  mutating func root() -> Frame {
    var frame = Frame(isInside: selection.isEmpty)
    if let rules {
      frame.state = classifier?.root(rules.kind, app: rules.app, group: rules.group)
    }
    if !classes.isIdle { frame.dataClass = classes.dataClass(of: base) }
    return frame
  }

  /// Returns the role of an entry by its path in the walk, and for a directory the frame of its
  /// children. A log or a journal has the role of its database, unless it is itself what was
  /// selected.
  ///
  /// - Parameter isDatabase: whether a file's content begins like a database.
  mutating func select(
    _ entry: TreeEntry, at path: ByteString, in directory: Frame,
    isDatabase: (Content) -> Bool
  ) -> (role: Role, frame: Frame) {
    if isIdle { return (.whole, directory) }
    let (role, frame) = decide(entry, at: path, in: directory)
    guard frame.isInside, entry.node.kind == .file else { return (role, frame) }
    return (databases.role(of: entry, at: path, own: role, isDatabase: isDatabase), frame)
  }

  /// Returns the role of an entry by itself, and for a directory the frame of its children.
  private mutating func decide(
    _ entry: TreeEntry, at path: ByteString, in directory: Frame
  ) -> (role: Role, frame: Frame) {
    var frame = directory
    frame.depth += 1
    frame.isEmptied = false
    if !directory.isInside {
      guard directory.depth < selection.count, isOnPath(entry, at: directory.depth) else {
        return (.skip, frame)
      }
      frame.isInside = directory.depth + 1 == selection.count
    }
    let isNamed = frame.isInside && !directory.isInside
    let disposition = disposition(of: entry, in: directory, &frame)
    if !frame.isInside { return (entry.isDirectory ? .parentOnly : .skip, frame) }
    if isNamed, disposition != .restore { frame.isForced = true }
    if !frame.isForced {
      switch disposition {
      case .restore: break
      case .recreateEmpty, .skip:
        if !classes.isIdle {
          frame.dataClass = classes.dataClass(of: base.appending(path), in: directory.dataClass)
        }
        guard entry.isDirectory else {
          return (classes.wants(frame.dataClass) ? .omitted : .skip, frame)
        }
        frame.isEmptied = true
        // Entries in it with rules of their own are restored, and need the directories above them.
        let isMade = disposition == .recreateEmpty && !directory.isEmptied
        return (isMade ? .empty : .parentOnly, frame)
      case .remove: return (.remove, frame)
      case .regenerate:
        // In a new container the file is generated, and an existing one is kept.
        if let rules, rules.generated[path] != nil || scanned?.index(of: path) != nil {
          return (.skip, frame)
        }
      }
    }
    guard !classes.isIdle else { return (.whole, frame) }
    frame.dataClass = classes.dataClass(of: base.appending(path), in: directory.dataClass)
    if classes.wanted.contains(frame.dataClass) { return (.whole, frame) }
    return (entry.isDirectory ? .parentOnly : .skip, frame)
  }

  /// Whether an entry is the selected one or a directory above it; the log of a selected database
  /// is selected with it.
  private func isOnPath(_ entry: TreeEntry, at depth: Int) -> Bool {
    if entry.name == selection[depth] { return true }
    return depth + 1 == selection.count && !entry.isDirectory
      && entry.name.databaseOfCompanion == selection[depth]
  }

  private mutating func disposition(
    of entry: TreeEntry, in directory: Frame, _ frame: inout Frame
  ) -> RestoreDisposition {
    guard let above = directory.state else { return .restore }
    guard var state = entry.name.withSpan({ classifier?.descend(above, $0) }) else {
      return .restore
    }
    for attribute in entry.attributes {
      guard case .inline(let value) = attribute.value else { continue }
      let marks = marks(attribute.name, value)
      if !marks.isEmpty, let marked = classifier?.marking(state, marks) { state = marked }
    }
    frame.state = state
    guard let found = classifier?.verdicts(state, entry.facts).keep.restore else { return .restore }
    // A snapshot does not tell whether a file belongs to a database: if it may be one that the
    // policy restores, it is restored.
    guard found != .restore, entry.node.kind == .file, classifier?.asksForDatabases(state) == true
    else { return found }
    var facts = entry.facts
    facts.type = .database
    return classifier?.verdicts(state, facts).keep.restore == .restore ? .restore : found
  }

  private func marks(_ name: ByteString, _ value: [UInt8]) -> MarkSet {
    var marks = name.withSpan { classifier?.attributeMarks($0) ?? [] }
    for (index, marker) in (rules?.policy.markers ?? []).enumerated()
    where marks.contains(MarkSet(marker: index)) && !marker.accepts(value) {
      marks.remove(MarkSet(marker: index))
    }
    return marks
  }
}

extension TreeEntry {
  var isDirectory: Bool { if case .directory = node { true } else { false } }

  /// The properties that a policy's conditions examine.
  fileprivate var facts: EntryFacts {
    switch node {
    case .file(let content):
      EntryFacts(.file, size: Int64(clamping: content.size), modified: modified.seconds)
    case .directory: EntryFacts(.directory, modified: modified.seconds)
    case .symlink: EntryFacts(.symlink, modified: modified.seconds)
    case .fifo, .socket, .characterDevice, .blockDevice:
      EntryFacts(.special, modified: modified.seconds)
    }
  }
}

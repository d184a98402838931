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
    /// The file is not restored, and an existing entry is removed.
    case remove
    /// A directory that is removed, except for entries in it with rules of their own: it is created
    /// like one of `parentOnly`.
    case removedParent

    /// Whether the entry is a directory that is created only if something in it is restored.
    var isParentOnly: Bool { self == .parentOnly || self == .removedParent }
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
    /// Whether the policy removes the directory, apart from entries in it with rules of their own.
    var isRemoved = false
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
  private let facts: StoredDirectoryFacts?

  init(
    _ request: RestoreRequest, _ snapshot: Snapshot, from reader: RepositoryReader,
    scanned: EntryLookup?
  ) {
    rules = request.rules
    self.scanned = scanned
    base = request.path
    facts = request.rules.map { rules in
      StoredDirectoryFacts(rules.policy, rules.kind, of: snapshot, at: request.path, from: reader)
    }
    classes = ClassFilter(request.classes, snapshot)
    selection = request.rules?.selection.components ?? []
    classifier = request.rules.map { Classifier($0.policy, scanStart: snapshot.time.seconds) }
  }

  /// Whether everything is restored as it was stored.
  var isIdle: Bool { rules == nil && classes.isIdle }

  /// Returns the frame for the root directory of the walk, which has this entry.
  mutating func root(_ entry: TreeEntry) -> Frame {
    var frame = Frame(isInside: selection.isEmpty)
    if let rules {
      let state = classifier?.root(rules.kind, app: rules.app, group: rules.group)
      frame.state = state.map { holding(marked($0, entry, at: ""), entry, at: "") }
    }
    if !classes.isIdle { frame.dataClass = classes.dataClass(of: base) }
    return frame
  }

  /// Returns the role of an entry by its path in the walk, and for a directory the frame of its
  /// children. A log or a journal has the role of its database, unless it is itself what was
  /// selected.
  ///
  /// - Parameter isDatabase: whether a file is a database, given the one with a journal's name.
  mutating func select(
    _ entry: TreeEntry, at path: ByteString, in directory: Frame,
    isDatabase: (_ file: Content, _ journal: Content) -> Bool
  ) -> (role: Role, frame: Frame) {
    if isIdle { return (.whole, directory) }
    var (role, frame) = decide(entry, at: path, in: directory)
    if role != .skip, let state = frame.state { frame.state = holding(state, entry, at: path) }
    guard frame.isInside, entry.node.kind == .file else { return (role, frame) }
    return (databases.role(of: entry, at: path, own: role, isDatabase: isDatabase), frame)
  }

  /// Returns the role of an entry by itself, and for a directory the frame of its children.
  private mutating func decide(
    _ entry: TreeEntry, at path: ByteString, in directory: Frame
  ) -> (role: Role, frame: Frame) {
    var frame = directory
    frame.depth += 1
    (frame.isEmptied, frame.isRemoved) = (false, false)
    if !directory.isInside {
      guard directory.depth < selection.count, isOnPath(entry, at: directory.depth) else {
        return (.skip, frame)
      }
      frame.isInside = directory.depth + 1 == selection.count
    }
    let isNamed = frame.isInside && !directory.isInside
    let disposition = disposition(of: entry, at: path, in: directory, &frame)
    if !frame.isInside { return (entry.isDirectory ? .parentOnly : .skip, frame) }
    if isNamed, disposition != .restore { frame.isForced = true }
    if !classes.isIdle {
      frame.dataClass = classes.dataClass(of: base.appending(path), in: directory.dataClass)
    }
    if !frame.isForced,
      let role = role(of: entry, at: path, for: disposition, in: directory, &frame)
    {
      return (role, frame)
    }
    if classes.wants(frame.dataClass) { return (.whole, frame) }
    return (entry.isDirectory ? .parentOnly : .skip, frame)
  }

  /// Returns the role of an entry that the policy does not restore as it was stored; nil if the
  /// policy does.
  private func role(
    of entry: TreeEntry, at path: ByteString, for disposition: RestoreDisposition,
    in directory: Frame, _ frame: inout Frame
  ) -> Role? {
    switch (disposition, entry.isDirectory) {
    case (.restore, _): return nil
    case (.regenerate, _):
      // In a new container the file is generated, and an existing one is kept.
      guard let rules else { return nil }
      let isPresent = rules.generated[path] != nil || scanned?.index(of: path) != nil
      return isPresent ? .skip : nil
    case (.remove, false): return .remove
    case (.skip, false), (.recreateEmpty, false):
      return classes.wants(frame.dataClass) ? .omitted : .skip
    // Entries in it with rules of their own are restored, and need the directories above them.
    case (.remove, true):
      frame.isRemoved = true
      return .removedParent
    case (.skip, true), (.recreateEmpty, true):
      frame.isEmptied = true
      let isMade = disposition == .recreateEmpty && !directory.isEmptied && !directory.isRemoved
      return isMade ? .empty : .parentOnly
    }
  }

  /// Whether an entry is the selected one or a directory above it; the log of a selected database
  /// is selected with it.
  private func isOnPath(_ entry: TreeEntry, at depth: Int) -> Bool {
    if entry.name == selection[depth] { return true }
    return depth + 1 == selection.count && !entry.isDirectory
      && entry.name.databaseOfCompanion == selection[depth]
  }

  /// Whether files of the class of a frame are requested.
  func wants(_ frame: Frame) -> Bool { classes.wants(frame.dataClass) }

  private mutating func disposition(
    of entry: TreeEntry, at path: ByteString, in directory: Frame, _ frame: inout Frame
  ) -> RestoreDisposition {
    guard let above = directory.state else { return .restore }
    guard let found = entry.name.withSpan({ classifier?.descend(above, $0) }) else {
      return .restore
    }
    let state = marked(found, entry, at: path)
    frame.state = state
    guard let given = classifier?.verdicts(state, entry.facts).keep.restore else { return .restore }
    // A snapshot does not record whether a file belongs to a database: if it may belong to one that
    // the policy restores, it is restored.
    guard given != .restore, entry.node.kind == .file, classifier?.asksForDatabases(state) == true
    else { return given }
    var facts = entry.facts
    facts.type = .database
    return classifier?.verdicts(state, facts).keep.restore == .restore ? .restore : given
  }

  /// Returns the state of an entry with its marks.
  private mutating func marked(
    _ state: Classifier.State, _ entry: TreeEntry, at path: ByteString
  ) -> Classifier.State {
    var found = facts?.marks(on: entry, at: path) ?? []
    for attribute in entry.attributes {
      guard case .inline(let value) = attribute.value else { continue }
      found.formUnion(marks(attribute.name, value))
    }
    return found.isEmpty ? state : classifier?.marking(state, found) ?? state
  }

  /// Returns the state of a directory for its entries, with the names in it that rules test for.
  private mutating func holding(
    _ state: Classifier.State, _ entry: TreeEntry, at path: ByteString
  ) -> Classifier.State {
    guard let asked = classifier?.siblingNames(state), !asked.isEmpty,
      let held = facts?.siblings(asked, in: entry, at: path)
    else { return state }
    return classifier?.holding(state, held) ?? state
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

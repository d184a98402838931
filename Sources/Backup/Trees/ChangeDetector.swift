internal import ArchiveStore
internal import Codecs
internal import DatabaseCapture
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Determines which entries of a container's scan are unchanged since the state was recorded.
///
/// Each directory's record is joined with the scanned entries in the order of names, a directory
/// before those in it. Then, from the bottom up, directories without any change are identified.
struct ChangeDetector {
  private let tree: SelectedTree
  private let state: SourceState
  private let links: HardLinks
  private let contents: Contents
  /// The revision that a refresh copied, if the tree is such a copy.
  private var original: RevisionCopy?
  private var known: UnchangedEntries
  /// A bundle in a new directory that may be unchanged.
  private var bundle: SameBundle?
  /// Directories to which no entry was added and from which none was removed.
  private var complete: Set<Int32> = []
  /// The recorded entries of files that may belong to a database.
  private var files: [Int32: KnownEntry] = [:]

  /// Compares a tree with the state.
  ///
  /// - Parameter trees: all trees of the plan, including old revisions.
  static func make(
    _ tree: SelectedTree, among trees: [SelectedTree], state: SourceState, links: HardLinks,
    contents: Contents
  ) -> UnchangedEntries {
    var detector = ChangeDetector(
      tree: tree, state: state, links: links, contents: contents,
      original: RevisionCopy(
        tree, among: trees, state.container(tree.scan.container.logicalPrefix)),
      known: UnchangedEntries(entries: tree.scan.entries.count))
    if !tree.isEmpty { detector.run() }
    return detector.known
  }

  private mutating func run() {
    let path = tree.scan.container.logicalPrefix
    let container = state.container(path)
    let trust = contents.trust(in: container, of: state)
    bundle = SameBundle(tree, known: container, versions: contents.versions)
    add(0, entry: container?.entry, key: DirectoryKey(container: path))
    for directory in tree.scan.entries.indices
    where tree.scan.entries[directory].childCount >= 0 { join(directory, trust) }
    joinDatabases()
    if let bundle, bundle.isSame {
      for (index, entry) in bundle.entries { known.renamedLinks[index] = entry }
    }
    for directory in tree.scan.entries.indices.reversed() { close(directory) }
    if known.isWhole(0) { known.root = container }
  }

  /// Adds the recorded facts of a directory.
  private mutating func add(_ directory: Int, entry: KnownEntry?, key: DirectoryKey) {
    var facts = UnchangedEntries.DirectoryFacts(key: key, record: entry?.directory)
    let scanned = tree.scan.entries[directory]
    // The entries of a stale directory are unknown: it must be opened again.
    if let entry, !scanned.isStale, ChangeRules.isUnchanged(entry, scanned.status),
      let stored = entry.entry, contents.holdsAttributes(of: stored)
    {
      facts.metadata = StoredMetadata(attributes: stored.attributes, flags: stored.flags)
    }
    known.directories[Int32(directory)] = facts
  }

  /// Joins a directory's record with its children.
  private mutating func join(_ directory: Int, _ trust: ChangeRules.Trust) {
    guard let facts = known.directories[Int32(directory)] else { return }
    var record = state.directory(at: facts.record, key: facts.key)
    let children = tree.children(of: directory)
    var found = 0
    for child in children {
      let entry = tree.scan.entries[Int(child)]
      let match = tree.scan.withName(Int(child)) { record.find($0, entry.status) }
      // Entries that an interrupted run read are not in a tree yet.
      if let match, !match.isOfInterruptedRun { found += 1 }
      if entry.status.kind == .directory {
        original?.enter(Int(child), of: directory, in: tree.scan)
        add(Int(child), entry: match, key: facts.key.directory(tree.scan.name(Int(child))))
        continue
      }
      if let match {
        accept(Int(child), entry: match, trust: trust)
        acceptCopy(Int(child), of: directory, entry: match, trust: trust)
        recordEarlierVersion(of: Int(child), match, trust)
      }
      carry(Int(child), entry: match, trust: trust)
    }
    if found != children.count || found != record.count { bundle?.differ() }
    if trust == .asListed, record.tree != nil, found == children.count, found == record.count {
      complete.insert(Int32(directory))
    }
  }

  /// Accepts the recorded entry of a file, link or special file if it is still valid.
  private mutating func accept(_ index: Int, entry: KnownEntry, trust: ChangeRules.Trust) {
    let status = tree.scan.entries[index].status
    guard entry.isStored, ChangeRules.isUnchanged(entry, status) else { return }
    let isListed = trust == .asListed && !entry.isOfInterruptedRun
    if mayHideWrite(index, entry) {
      if isListed || contents.holds(entry) { known.uncertain[Int32(index)] = entry.entry }
      return
    }
    guard !isListed || status.links > 1 else { return reuse(index, entry) }
    guard let stored = entry.entry, isListed || contents.holds(entry) else { return }
    if status.links > 1, stored.linkGroup != links.name(of: status.identity) {
      known.renamedLinks[Int32(index)] = stored
    } else {
      reuse(index, entry)
    }
  }

  /// Whether a file may have been written before the machine was restarted although its status is
  /// still the recorded one: a crash keeps data that a database made durable, but not the times.
  private func mayHideWrite(_ index: Int, _ entry: KnownEntry) -> Bool {
    let status = tree.scan.entries[index].status
    return status.kind == .file && !state.isOfThisBoot(entry)
      && (tree.databases.isMember(index) || DatabaseUnit.mayBeDatabase(size: status.size))
  }

  /// Accepts the recorded entry of the file that this one was copied from, if neither can have
  /// changed since.
  private mutating func acceptCopy(
    _ index: Int, of directory: Int, entry: KnownEntry, trust: ChangeRules.Trust
  ) {
    guard let original, !known.isKnown(index), entry.isStored, !mayHideWrite(index, entry),
      let copied = original.file(index, of: directory, in: tree.scan, entry),
      trust == .asListed && !entry.isOfInterruptedRun || contents.holds(copied.stored)
    else { return }
    known.copies[Int32(index)] = copied
  }

  /// Records that the stored version of a file that may have to be read exists.
  private mutating func recordEarlierVersion(
    of index: Int, _ entry: KnownEntry, _ trust: ChangeRules.Trust
  ) {
    let status = tree.scan.entries[index].status
    guard status.kind == .file, entry.kind == .file, entry.isStored,
      !known.isKnown(index) || tree.databases.isMember(index),
      trust == .asListed && !entry.isOfInterruptedRun
        || contents.holds(entry)
    else { return }
    known.flags[index].formUnion(.hasEarlierVersion)
    if status.size > entry.size { known.growth[Int32(index)] = status.size - entry.size }
  }

  /// Compares an entry of a bundle that is in a new directory.
  private mutating func carry(_ index: Int, entry: KnownEntry?, trust: ChangeRules.Trust) {
    guard bundle != nil, !known.isKnown(index), !tree.databases.isMember(index),
      known.uncertain[Int32(index)] == nil
    else { return }
    let isStored =
      entry.map { known in
        known.isStored && !known.isOfInterruptedRun
          && (trust == .asListed || contents.holds(known))
      } ?? false
    bundle?.add(
      index, status: tree.scan.entries[index].status, known: entry, isStored: isStored)
  }

  private mutating func reuse(_ index: Int, _ entry: KnownEntry) {
    known.flags[index].formUnion(.isKnown)
    if tree.databases.isMember(index) { files[Int32(index)] = entry }
  }

  /// Marks all files of a database as read if one of them is, so that they are consistent. If each
  /// is a copy, they are read only if one of the copies cannot be relied on.
  private mutating func joinDatabases() {
    for (database, companions) in tree.databases.companions {
      let members = [database] + companions
      guard members.contains(where: { tree.isRead(Int($0), known) }) else { continue }
      let areCopies = members.allSatisfy { known.copies[$0] != nil }
      for member in members where !areCopies {
        known.flags[Int(member)].remove(.isKnown)
        known.renamedLinks[member] = nil
        known.copies[member] = nil
      }
      known.companions.formUnion(companions)
      let files = files.filter { members.contains($0.key) }
      known.databases[database] = UnchangedEntries.DatabaseFiles(
        companions: companions, known: files)
    }
  }

  /// Marks a directory as unchanged if nothing at or below it changed. It then needs no facts.
  private mutating func close(_ directory: Int) {
    guard complete.contains(Int32(directory)), known.directories[Int32(directory)]?.metadata != nil,
      tree.children(of: directory).allSatisfy({ known.isKnown(Int($0)) })
    else { return }
    known.flags[directory].formUnion(.isWhole)
    known.directories[Int32(directory)] = nil
  }
}

extension ChangeDetector {
  /// Answers whether a repository holds the contents that a state names.
  struct Contents {
    let session: WritingSession
    let lists: Lists
    private let packs: ListedPacks
    /// The bundles that have the stored version.
    var versions = SameBundle.Versions.unknown

    init(_ session: WritingSession, _ state: SourceState) {
      self.session = session
      lists = Lists(session, state.known?.file)
      packs = ListedPacks(session.indexedPacks)
    }

    /// Returns how far a container's record can be relied on.
    func trust(in container: KnownContainer?, of state: SourceState) -> ChangeRules.Trust {
      guard let container else { return .afterLookup }
      return ChangeRules.trust(
        snapshotIsHeld: session.holds(snapshot: container.snapshot),
        canRelyOnLists: session.canRelyOnLists,
        arePacksThere: state.arePacksThere(packs, for: container))
    }

    /// Whether every blob of a recorded entry is stored.
    func holds(_ known: KnownEntry) -> Bool {
      known.entry.map { holds($0, lists: known.isOfInterruptedRun ? nil : known.lists) } ?? false
    }

    /// Whether every blob of an entry is stored.
    ///
    /// - Parameter record: the location of the record of its lists, or nil if it has none.
    func holds(_ entry: TreeEntry, lists record: RecordPointer? = nil) -> Bool {
      ChangeRules.isStored(entry, contains: session.contains) { digest, level, length in
        lists.pieces(of: digest, level: level, length: length, in: record)
      }
    }

    /// Whether every attribute of an entry is stored.
    func holdsAttributes(of entry: TreeEntry) -> Bool {
      entry.attributes.allSatisfy { attribute in
        guard case .blob(let digest, _) = attribute.value else { return true }
        return session.contains(BlobID(kind: .data, digest: digest))
      }
    }
  }

  /// Reads lists of pieces from the state, or from the repository if the state lacks them. The
  /// reader is opened on first use, because that reads the index again. For use by one thread.
  final class Lists {
    private let session: WritingSession
    private let state: RecordFile?
    private lazy var reader = try? session.beginReading()
    /// The lists of the last file.
    private var last: (record: RecordPointer, lists: RecordedLists.OfFile)?

    init(_ session: WritingSession, _ state: RecordFile?) {
      (self.session, self.state) = (session, state)
    }

    func pieces(
      of list: Digest, level: UInt8, length: UInt64, in record: RecordPointer?
    ) -> [Piece]? {
      if let state, let record {
        if last?.record != record {
          last = (record, RecordedLists.OfFile(at: record, in: state))
        }
        let pieces = last?.lists.pieces(of: list, level: level, length: length)
        if let pieces { return pieces }
      }
      return try? reader?.pieces(ofList: list, level: level, length: length)
    }
  }
}

/// A bundle in a directory other than the recorded one (the platform gave it a new UUID) that has
/// the stored version and build. Its files are not read if all names, kinds, sizes, modes, owners
/// and modification times equal the stored ones (docs/decisions/0010-bundles-under-new-uuids.md).
struct SameBundle {
  /// The stored entries of the files, by their indexes in the scan.
  private(set) var entries: [Int32: TreeEntry] = [:]
  /// Whether no difference was found so far.
  private(set) var isSame = true

  /// Returns nil if the container is not a bundle, is in the recorded directory, or has another
  /// version.
  init?(_ tree: SelectedTree, known: KnownContainer?, versions: Versions) {
    guard tree.scan.container.kind == .bundle, let known, let root = tree.scan.entries.first,
      root.status.identity.inode != known.entry.inode,
      versions.areSame(tree.scan.container, in: known.snapshot)
    else { return nil }
  }

  /// Compares an entry that is not a directory with the recorded one of the same name.
  mutating func add(_ index: Int, status: FileStatus, known: KnownEntry?, isStored: Bool) {
    guard isSame, isStored, let known, known.isStable, let stored = known.entry,
      stored.node.kind == status.kind, stored.permissions == status.permissions,
      stored.owner == status.user, stored.group == status.group,
      stored.modified == status.modified, status.links == 1, stored.linkGroup == nil,
      status.kind != .file || known.size == status.size
    else {
      isSame = false
      return
    }
    // The target of a link is not in its status.
    if status.kind == .file { entries[Int32(index)] = stored }
  }

  /// Records that a directory's entries differ from the stored ones.
  mutating func differ() { isSame = false }
}

extension SameBundle {
  /// The apps whose version on the device is the one in a snapshot.
  struct Versions: Sendable {
    private let snapshot: Digest?
    private var same: Set<ByteString> = []

    /// No versions, so that every bundle is read.
    static let unknown = Versions()

    private init() { snapshot = nil }

    init(_ device: Device, _ earlier: StoredSnapshot?) {
      snapshot = earlier?.id
      let stored = Dictionary(
        (earlier?.snapshot.apps ?? []).map { ($0.identifier, $0) }, uniquingKeysWith: { $1 })
      for app in device.apps {
        guard let record = stored[app.identifier.description], record.version != nil,
          record.version == app.version?.description, record.build == app.build?.description
        else { continue }
        same.insert(app.identifier.bytes)
      }
    }

    /// Whether a bundle has the version recorded in the snapshot.
    func areSame(_ bundle: Container, in snapshot: Digest) -> Bool {
      snapshot == self.snapshot && bundle.owner.map { same.contains($0.bytes) } ?? false
    }
  }
}

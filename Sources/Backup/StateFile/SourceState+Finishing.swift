internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import SystemIO

extension SourceState {
  /// Makes the records of this run the state. To be called only after the snapshot is durable.
  ///
  /// - Parameters:
  ///   - containers: the containers that the run stored; their records replace the earlier ones.
  ///   - packs: the packs that the repository has and an index names, including those of this run.
  ///   - keepingOthers: whether the run covered a part, so that the records of other containers
  ///     remain.
  /// - Throws: `failed` if the state could not be written; the earlier state is then unchanged.
  func finish(
    _ containers: [RecordedContainer], snapshot: Digest, packs: Set<Digest>,
    keepingOthers: Bool = false
  ) throws(OperationError) {
    guard let records, let directory else { return }
    let paths = Set(containers.map(\.path))
    let others = keepingOthers ? self.containers.filter { !paths.contains($0.path) } : []
    let list = write(packs, to: records)
    let rows =
      containers.compactMap {
        ContainerTable.Row($0, snapshot: snapshot, packs: list)
      } + others.map { ContainerTable.Row($0, directory: $0.entry.directory, packs: $0.packs) }
    do throws(SystemError) {
      let head = try commit(
        ContainerTable.encode(rows), boot: others.isEmpty ? boot : bootOfOthers, to: records,
        in: directory)
      if head.isWorthCompacting { try compact(head, of: records, in: directory) }
      if keepingOthers {
        // Records of an interrupted run of the whole source stay valid; parts would add up.
        try interrupted.forget()
      } else if try directory.directory.statusIfPresent(key.partial) != nil {
        try directory.directory.remove(key.partial)
      }
      UnusedStates.remove(besides: key.source, from: directory.directory, now: clock.start)
    } catch {
      throw OperationError(
        .failed, code: .stateNotSaved, "save the state of this source", reason: error.description,
        hint: "the snapshot is complete; the next run reads more files than necessary")
    }
  }

  /// The boot to record if entries of other containers remain: these were not examined, so it is
  /// the one in which they were recorded.
  private var bootOfOthers: Boot { known?.head.boot ?? .unknown }

  /// Writes the list of packs, unless it already exists.
  private func write(_ packs: Set<Digest>, to records: RecordFile) -> RecordPointer {
    let list = ListedPacks.encode(packs)
    let pointer = RecordPointer(of: list, at: 0)
    if let same = containers.first(where: { $0.packs.moved(to: 0) == pointer }) {
      return same.packs
    }
    return records.append(list) ?? .nowhere
  }

  /// Writes the table and the head, and gives a new file its name.
  private func commit(
    _ table: [UInt8], boot: Boot, to records: RecordFile, in directory: StateDirectory
  ) throws(SystemError) -> KnownState.Head {
    let containers = records.append(table)
    try records.flush()
    var head = KnownState.Head(key, program: program, end: records.end, boot: boot)
    head.containers = containers
    if let known {
      head.generation = known.head.generation + 1
      head.wholeSize = known.head.wholeSize
    }
    try write(head, records)
    if known == nil { try name(in: directory) }
    return head
  }

  /// Rewrites the file without records that nothing points to, which are more than half of it.
  private func compact(
    _ head: KnownState.Head, of records: RecordFile, in directory: StateDirectory
  ) throws(SystemError) {
    guard let table = head.containers.flatMap({ records.read($0) }),
      let containers = ContainerTable.read(table)
    else { return }
    let target = RecordFile(try directory.create(key.replacement), end: KnownState.Head.firstRecord)
    var copy = RecordCopy(from: records, to: target)
    // Containers that one run recorded share a list of packs, which may be larger than the rest.
    var lists: [RecordPointer: RecordPointer] = [:]
    let rows = containers.map { container in
      let copied = container.entry.directory.flatMap { copy.copy($0) }
      if lists[container.packs] == nil {
        lists[container.packs] = records.read(container.packs).flatMap { target.append($0) }
      }
      return ContainerTable.Row(
        container, directory: copied, packs: lists[container.packs] ?? .nowhere)
    }
    var compacted = head
    compacted.containers = target.append(ContainerTable.encode(rows))
    try target.flush()
    (compacted.end, compacted.wholeSize) = (target.end, target.end)
    try write(compacted, target)
    try name(in: directory)
  }

  private func write(_ head: KnownState.Head, _ file: RecordFile) throws(SystemError) {
    try file.descriptor.write(head.encoded(), at: head.location)
    try file.descriptor.sync()
  }

  /// Renames a complete new file to the state's name.
  private func name(in directory: StateDirectory) throws(SystemError) {
    try directory.directory.rename(key.replacement, to: key.state, in: directory.directory)
    try directory.directory.sync()
  }

  /// Copies directories' records from one file to another, with everything below them and the lists
  /// of files.
  ///
  /// A damaged record is not copied; the entry that names it then has no record.
  fileprivate struct RecordCopy {
    private let source: RecordFile
    private let target: RecordFile
    private var open: [Level] = []

    /// A directory that is being copied.
    private struct Level {
      var entries: EntryPage.Cursor
      let tree: TreeReference?
      var record: DirectoryRecord
      /// The entry of the directory that is copied next, below this one.
      var waiting: KnownEntry?
    }

    init(from source: RecordFile, to target: RecordFile) {
      self.source = source
      self.target = target
    }

    /// Copies a directory; returns the location of its record in the target.
    mutating func copy(_ pointer: RecordPointer) -> RecordPointer? {
      guard push(pointer) else { return nil }
      while true {
        let top = open.count - 1
        if let entry = open[top].entries.next() {
          open[top].waiting = entry
          if let directory = entry.directory, push(directory) { continue }
          open[top].record.reuse(
            entry, record: entry.lists.flatMap { RecordedLists.copy($0, from: source, to: target) })
        } else {
          let level = open.removeLast()
          let copied = level.record.write(tree: level.tree)
          guard let parent = open.indices.last else { return copied }
          if let entry = open[parent].waiting { open[parent].record.reuse(entry, record: copied) }
        }
      }
    }

    private mutating func push(_ pointer: RecordPointer) -> Bool {
      guard let directory = DirectoryRecord.Contents(source.read(pointer)) else { return false }
      open.append(
        Level(
          entries: EntryPage.Cursor(directory, source), tree: directory.tree,
          record: DirectoryRecord(target)))
      return true
    }
  }
}
